package compaction_test

import (
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// C12: a compaction that would lose more on a warm cache than it saves until the next one
// clears more at once; one that pays, or whose cache is cold, clears what its target needs. The
// arithmetic is in the event.
func TestClearsPay(t *testing.T) {
	const target, least = 59_400, 49_500
	for _, x := range []struct {
		name   string
		lines  int   // of each result
		pause  int64 // in seconds
		model  string
		change func(*compaction.Policy)
		want   int64 // what is aimed for
	}{
		{"fast growth", 600, 5, "claude-sonnet-4-20250514", nil, least},
		{"no price", 600, 5, "my-model", nil, least},
		{"slow growth", 30, 5, "claude-sonnet-4-20250514", nil, target},
		{"cold", 600, 301, "claude-sonnet-4-20250514", nil, target},
		{"switched off", 600, 5, "claude-sonnet-4-20250514", func(p *compaction.Policy) { p.Cache.Seconds = 0 }, target},
		{"few turns are enough", 600, 5, "claude-sonnet-4-20250514", func(p *compaction.Policy) { p.Cache.Turns = 1 }, target},
		{"a lower target", 600, 5, "claude-sonnet-4-20250514", func(p *compaction.Policy) { p.Target = 400_000 }, 39_600},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := withoutSummaries()
			p.Cache.Turns = 24
			if x.change != nil {
				x.change(&p)
			}
			a := newAgent(t, configOf(t, p))
			b := firstCompaction(t, a, x.model, x.lines, x.pause*1000)
			c := b.Cache
			if b.TargetTokens != x.want || b.TokensAfter > x.want {
				t.Errorf("aimed for %d, left %d; want %d", b.TargetTokens, b.TokensAfter, x.want)
			}
			if c == nil || c.KeptTokens <= 0 || c.RewrittenTokens <= 0 || c.KeptTokens+c.RewrittenTokens > b.TokensAfter || c.Turns <= 0 {
				t.Fatalf("cache: %+v, of %d tokens", c, b.TokensAfter)
			}
			lost, saved := c.RewrittenTokens*(3750-300), b.TokensSaved*300*c.Turns
			cold := x.pause > 300
			if cold {
				lost = 0
			}
			if x.model == "my-model" {
				lost, saved = 0, 0
			}
			if x.name == "switched off" {
				return // then every cache is cold
			}
			if c.Cold != cold || c.Lost != lost || c.Saved != saved {
				t.Errorf("cache: %+v; want lost %d, saved %d", c, lost, saved)
			}
		})
	}
}

// firstCompaction publishes turns with a result each until the history is compacted.
func firstCompaction(t *testing.T, a *agent, model string, lines int, pause int64) *events.Compacted {
	t.Helper()
	for i := range 2000 {
		m := round(i)
		m[2].results[0].text = strings.Repeat("a line of words\n", lines)
		turn := object{"messages": messages(events.Anthropic, m...)}
		if i == 0 {
			turn["model"] = object{"provider": "anthropic", "name": model, "context_window": 100_000, "max_output_tokens": 1000}
		}
		a.now += pause
		for _, o := range a.publish(turn) {
			if b, ok := o.Body.(*events.Compacted); ok && b.Compacted {
				return b
			}
		}
	}
	t.Fatal("nothing was compacted")
	return nil
}

// C12: prices of a file take the place of those of the same models, and are part of the config.
func TestConfigPrices(t *testing.T) {
	c := defaultConfig(t)
	over, err := measure.ReadPrices([]byte(`{"my-model":{"input":10,"cached":1,"write":12,"output":50}}`))
	if err != nil {
		t.Fatal(err)
	}
	mine, err := c.WithPrices(over)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := mine.Prices.Of("my-model-2"); !ok || p.Write != 12 {
		t.Errorf("my-model-2: %+v, %t", p, ok)
	}
	if _, ok := c.Prices.Of("my-model-2"); ok || c.Hash() == mine.Hash() {
		t.Error("the config itself has changed, or its hash has not")
	}
	if _, err := c.WithPrices(measure.PriceTable{"x": {Input: -1}}); err == nil {
		t.Error("a negative price is taken")
	}
	if _, err := measure.ReadPrices([]byte(`{"x":{"inputs":1}}`)); err == nil {
		t.Error("an unknown field is taken")
	}
}
