package policy_test

import (
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
)

// Recorded answers of the reference system: of the release that its document describes, but for
// reserves and windows.
//
// Sizes are in UTF-16 units of the recorded texts; tools are in tokens, since the
// reference counts their JSON without margin or multiplier.
func TestCheckBudget(t *testing.T) {
	for _, c := range []struct {
		name, provider    string
		window, maxOutput measure.Tokens
		trigger           measure.PPM
		system, current   int64
		tools             measure.Tokens
		messages, files   []int64
		total, available  int64
		history           measure.Tokens
		within, compact   bool
	}{
		{"empty", "openai", 128000, 0, 0, 0, 0, 0, nil, nil, 0, 83200, 0, true, false},
		{"max-tokens-eats-window", "openai", 8192, 8192, 0, 0, 40, 0, nil, nil, 16, 0, 0, false, true},
		{"exact-threshold-is-compact", "openai", 8192, 7192, 0, 0, 3029, 0, nil, nil, 876, 1000, 0, true, true},
		{"threshold-one", "openai", 8192, 0, 1_000_000, 18000, 0, 0, nil, nil, 5179, 5324, 0, true, false},
		{"rand-0", "lm-studio", 128000, 0, 0, 0, 399, 0, []int64{43, 0, 900, 0, 2500, 128, 27, 184}, nil, 1265, 83200, 1146, true, false},
		{"rand-1", "azure", 8192, 7600, 950_000, 444, 131, 0, []int64{99, 0, 0, 300, 80, 245, 164, 196, 51, 0, 300, 0, 2500, 206}, []int64{615, 764}, 1849, 592, 1277, false, true},
		{"rand-3", "openai", 8192, 6000, 0, 992, 0, 298, []int64{37, 0, 0, 335, 300, 715, 742, 278, 851, 0, 80, 362}, nil, 1730, 2192, 1142, true, false},
		{"rand-4", "groq", 128000, 127000, 0, 305, 0, 201, []int64{647, 0, 0, 0, 900, 900, 300, 806, 423, 0, 900, 629}, []int64{1742, 564}, 2619, 1000, 1660, false, true},
		{"rand-7", "azure", 8192, 7600, 0, 538, 557, 64, []int64{372, 0, 0, 0, 80, 2500, 900, 367, 656, 850}, nil, 2101, 592, 1712, false, true},
		{"rand-8", "bedrock", 200000, 0, 0, 0, 0, 82, []int64{133, 0, 0, 2535, 2530, 53, 627, 161, 286, 702}, nil, 2640, 136000, 2558, true, false},
		{"rand-11", "azure", 8192, 7000, 0, 422, 239, 0, []int64{117, 0, 80, 143, 62, 88, 142, 128}, nil, 479, 1192, 280, true, false},
	} {
		r := measure.NewRate(measure.Profiles["seed"], c.provider)
		framed := func(units int64) measure.Tokens {
			if units == 0 {
				return 0
			}
			return r.Text(units) + r.PerMessage
		}
		p := measure.Prompt{System: framed(c.system), Current: framed(c.current), Tools: c.tools}
		for i, units := range c.messages {
			if i == 0 {
				p.History = r.PerConversation
			}
			e := measure.Entry{Role: measure.RoleUser, Flags: measure.FlagFirst, Text: uint32(units)}
			p.History += r.Entry(&e)
		}
		for _, units := range c.files {
			p.Files += r.Text(units)
		}
		own := policy.Default()
		own.Summarize.Enabled = false
		own.Threshold = max(own.Threshold, c.trigger)
		b := checkBudget(p, c.window, measure.OutputReserve(c.window, c.maxOutput), &own)
		if b.EstimatedInput != c.total || b.AvailableInput != c.available || p.History != c.history ||
			b.WithinBudget != c.within || b.ShouldCompact != c.compact {
			t.Errorf("%s: %+v", c.name, b)
		}
	}
}
