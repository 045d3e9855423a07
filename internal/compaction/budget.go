package compaction

import "compactd/internal/events"

// Prompt is what a call to a model consists of, in estimated tokens.
type Prompt struct {
	System, History, Current, Tools, Files Tokens

	// Correction is what the provider's own count adds to the estimates above.
	Correction Tokens
}

// Total is the estimated input of the call.
func (p Prompt) Total() Tokens {
	return p.System + p.History + p.Current + p.Tools + p.Files + p.Correction
}

// Fixed is the part that no compaction reduces.
func (p Prompt) Fixed() Tokens { return p.Total() - p.History }

// CheckBudget compares a prompt with the available input, window − reserve, and
// with the places that the policy sets.
func CheckBudget(p Prompt, window, reserve Tokens, policy *Policy) events.Budget {
	reserve = policy.reserve(reserve)
	total, m := p.Total(), policy.thresholds(window, reserve)
	available := m.available
	b := events.Budget{
		ContextWindow:  int64(window),
		OutputReserve:  int64(reserve),
		AvailableInput: int64(available),
		EstimatedInput: int64(total),
		UsagePPM:       int64(usage(total, available)),
		WithinBudget:   total <= available,
		ShouldCompact:  total >= m.trigger,
		Level:          m.level(total),
		PercentLeft:    policy.percentLeft(&m, total),
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

// maxUsage bounds the usage told when a model leaves no input at all.
const maxUsage PPM = 1000 * million

func usage(total, available Tokens) PPM {
	if available <= 0 || total/available >= Tokens(maxUsage/million) {
		return maxUsage
	}
	return PPM(int64(total) * million / int64(available))
}

// reaches reports whether total is at or above a share of available.
func reaches(total, available Tokens, share PPM) bool {
	return int64(total)*million >= int64(available)*int64(share)
}
