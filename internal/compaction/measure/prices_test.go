package measure

import "testing"

// C12: a model has the price of the longest name that begins its own, wherever it runs; one
// that no name begins, or whose name is known to cost something else, has none.
func TestPrices(t *testing.T) {
	table := DefaultPrices()
	for _, x := range []struct {
		model string
		in    Tokens
		want  Prices
	}{
		{"claude-sonnet-4-20250514", 1, Prices{Input: 3000, Cached: 300, Write: 3750, Output: 15000}},
		{"claude-opus-4-1-20250805", 1, Prices{Input: 15000, Cached: 1500, Write: 18750, Output: 75000}},
		{"anthropic/claude-opus-4.5", 1, Prices{Input: 5000, Cached: 500, Write: 6250, Output: 25000}},
		{"us.anthropic.claude-opus-5-5-v1:0", 1, Prices{Input: 4000, Cached: 200, Write: 5000, Output: 20000}},
		{"claude-haiku-5-5", 100_000, Prices{Input: 100, Cached: 10, Write: 125, Output: 500}},
		{"claude-haiku-5-5", 100_001, Prices{Input: 500, Cached: 50, Write: 625, Output: 2500}},
		{"gpt-5.5-2026-04-01", 300_000, Prices{Input: 10000, Cached: 1000, Write: 10000, Output: 45000}},
		{"openai/gpt-4o-2024-08-06", 1, Prices{Input: 2500, Cached: 1250, Write: 2500, Output: 10000}},
		{"gpt-5.5-pro", 1, Prices{Input: 30000, Cached: 30000, Write: 30000, Output: 180000}},
		{"gemini-2.5-flash-image", 1, Prices{}},
		{"my-model", 1, Prices{}},
		{"", 1, Prices{}},
	} {
		p, ok := table.Of(x.model)
		if p = p.For(x.in); ok != (x.want != Prices{}) {
			t.Errorf("%s: known %t", x.model, ok)
		}
		if p.Long = nil; p != x.want {
			t.Errorf("%s with %d tokens: %+v, not %+v", x.model, x.in, p, x.want)
		}
	}
	for name, p := range table {
		if p == nil {
			continue
		}
		if p.Input <= 0 || p.Cached <= 0 || p.Cached > p.Input || p.Write < p.Input || p.Output < p.Input {
			t.Errorf("%s: %+v", name, *p)
		}
	}
}
