package policy

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// BudgetOf compares a prompt with the available input, and with the places that the policy sets.
func (m *Thresholds) BudgetOf(p measure.Prompt, window measure.Tokens, policy *Policy) events.Budget {
	total, available := p.Total(), m.Available
	b := events.Budget{
		ContextWindow:  int64(window),
		OutputReserve:  int64(window - available),
		AvailableInput: int64(available),
		EstimatedInput: int64(total),
		UsagePPM:       int64(usage(total, available)),
		WithinBudget:   total <= available,
		ShouldCompact:  total >= m.Trigger,
		Level:          m.level(total),
		PercentLeft:    policy.percentLeft(m, total),
		TriggerTokens:  int64(m.Trigger),
		TargetTokens:   int64(m.Target),
		LimitTokens:    int64(m.limit),
		Breakdown: events.Breakdown{
			SystemPrompt:    int64(p.System),
			History:         int64(p.History),
			CurrentPrompt:   int64(p.Current),
			ToolDefinitions: int64(p.Tools),
			FileAttachments: int64(p.Files),
			Correction:      int64(p.Correction),
		},
	}
	return b
}

// maxUsage bounds the usage reported when a model leaves no input at all.
const maxUsage measure.PPM = 1000 * measure.Million

func usage(total, available measure.Tokens) measure.PPM {
	if available <= 0 || total/available >= measure.Tokens(maxUsage/measure.Million) {
		return maxUsage
	}
	return measure.PPM(int64(total) * measure.Million / int64(available))
}
