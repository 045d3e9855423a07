package policy

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Modes: each sets the trigger by another field.
const (
	modeRatio  = "ratio"
	modeTokens = "tokens"
	modeBuffer = "buffer"
)

// Buffers holds distances in tokens. Reserve, Trigger and Blocking are for trigger buffer, Warning and Error
// for tokens too. All but ReserveTokens hold for sizes of ScaleBelow tokens and more, and shrink in
// proportion below; 0 never shrinks them. The size is the window under buffer, the trigger under tokens.
type Buffers struct {
	ReserveTokens  measure.Tokens `json:"reserve_tokens"`  // most tokens kept free for the answer
	TriggerTokens  measure.Tokens `json:"trigger_tokens"`  // from the trigger to the end of the input
	BlockingTokens measure.Tokens `json:"blocking_tokens"` // from the hard limit to the end of the input
	WarningTokens  measure.Tokens `json:"warning_tokens"`  // from level warning to the trigger
	ErrorTokens    measure.Tokens `json:"error_tokens"`    // from level error to the trigger
	ScaleBelow     measure.Tokens `json:"scale_below"`
}

// Thresholds divide the window, in tokens of the estimated input. An input at or above a threshold has
// reached it. The level is that of the highest threshold reached.
type Thresholds struct {
	Available measure.Tokens // the input that the model can read
	limit     measure.Tokens // the hard limit: truncation no longer waits
	Trigger   measure.Tokens
	Prepare   measure.Tokens
	Target    measure.Tokens // goal of a compaction

	compacting, error, warning, info measure.Tokens // beginnings of these levels
}

// never is the threshold of a level that the policy does not have.
const never measure.Tokens = 1 << 62

// Reserve is the output reserve under the policy.
func (p *Policy) Reserve(reserve measure.Tokens) measure.Tokens {
	if p.TriggerMode == modeBuffer {
		return min(reserve, p.Buffers.ReserveTokens)
	}
	return reserve
}

// leastReserve is the least share of a window for the answer beside a large fixed part.
const leastReserve measure.PPM = 100_000

// ReserveBeside is the reserve if no call states one, beside a fixed part that no compaction reduces: the
// history gets at least as much of the rest.
func (p *Policy) ReserveBeside(fixed, window, reserve measure.Tokens) measure.Tokens {
	if p.SharesOf != sharesOfHistory {
		return reserve
	}
	return min(reserve, max((window-fixed)/2, leastReserve.Share(window)))
}

// Bases of the shares.
const (
	sharesOfHistory = "history"
	sharesOfInput   = "input"
)

// mostFixed is the largest fixed part, as a share of the trigger or of the available input: a provider's
// count beyond it is taken for content.
const mostFixed measure.PPM = 500_000

// Thresholds returns the thresholds of a window and its output reserve, for an input with a fixed part that
// no compaction reduces. The trigger is at most most: above that each token costs more. The thresholds below
// the trigger move with it.
func (p *Policy) Thresholds(window, reserve, fixed, most measure.Tokens) Thresholds {
	m := Thresholds{Available: window - reserve}
	of, in := m.Available, measure.PPM(measure.Million) // base of the shares
	m.limit = m.Available
	switch p.TriggerMode {
	case modeTokens:
		of, in = min(p.ThresholdTokens, m.Available), p.Threshold
	case modeBuffer:
		of, in = max(m.Available-measure.Scaled(p.Buffers.TriggerTokens, window, p.Buffers.ScaleBelow), 0), p.Threshold
		m.limit = max(m.Available-measure.Scaled(p.Buffers.BlockingTokens, window, p.Buffers.ScaleBelow), 0)
	}
	if p.LimitTokens > 0 {
		m.limit = min(p.LimitTokens, m.Available)
	}
	if p.SharesOf != sharesOfHistory {
		fixed = 0
	}
	up := func(share measure.PPM) measure.Tokens {
		below := min(fixed, mostFixed.Share(of))
		return below + measure.Tokens(measure.CeilDiv(int64(of-below)*int64(share), int64(in)))
	}
	down := func(share measure.PPM) measure.Tokens {
		below := min(fixed, mostFixed.Share(of))
		return below + measure.Tokens(int64(of-below)*int64(share)/int64(in))
	}
	if most = min(p.ThresholdCap.Share(m.Available), m.limit, most); up(p.Threshold) > most {
		of, in = most, p.Threshold
	}
	m.Trigger, m.Prepare, m.info = up(p.Threshold), up(p.Summarize.Prepare), up(p.Info)
	m.Target = down(p.Target)
	p.grade(&m, window)
	return m
}

// grade sets the beginnings of the levels above info. A share of the input has one step, at the trigger;
// distances in tokens have earlier steps too. If nothing is compacted, they lead to the end of the input.
func (p *Policy) grade(m *Thresholds, window measure.Tokens) {
	m.warning, m.error, m.compacting = m.Trigger, never, never
	size := window
	switch p.TriggerMode {
	case modeRatio:
		return
	case modeTokens:
		size = m.Trigger
	}
	end := m.Available
	if p.Enabled {
		end, m.compacting = m.Trigger, m.Trigger
	}
	m.warning = end - measure.Scaled(p.Buffers.WarningTokens, size, p.Buffers.ScaleBelow)
	m.error = end - measure.Scaled(p.Buffers.ErrorTokens, size, p.Buffers.ScaleBelow)
}

// level is the level of the highest threshold that an input has reached.
func (m *Thresholds) level(total measure.Tokens) events.Level {
	switch {
	case total >= m.limit:
		return events.LevelBlocking
	case total >= m.compacting:
		return events.LevelCompacting
	case total >= m.error:
		return events.LevelError
	case total >= m.warning:
		return events.LevelWarning
	case total >= m.info:
		return events.LevelInfo
	default:
		return events.LevelOK
	}
}

// percentLeft is the rest of the way to the trigger, or to the end of the input if nothing is compacted: in
// whole percent, rounded to the nearest, never below 0.
func (p *Policy) percentLeft(m *Thresholds, total measure.Tokens) int64 {
	end := int64(m.Trigger)
	if !p.Enabled {
		end = int64(m.Available)
	}
	if end <= int64(total) {
		return 0
	}
	return (200*(end-int64(total)) + end) / (2 * end)
}

// BudgetOf compares a prompt with the available input and the thresholds.
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

// maxUsage bounds the reported usage of a model without room for input.
const maxUsage measure.PPM = 1000 * measure.Million

func usage(total, available measure.Tokens) measure.PPM {
	if available <= 0 || total/available >= measure.Tokens(maxUsage/measure.Million) {
		return maxUsage
	}
	return measure.PPM(int64(total) * measure.Million / int64(available))
}
