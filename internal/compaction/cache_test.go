package compaction_test

import (
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// C12: in a large window a history is compacted below its trigger once the turns ahead pay for the
// cache that this breaks. The arithmetic is in the event.
func TestClearsPay(t *testing.T) {
	const priced = "claude-opus-4-6-20260205"
	for _, x := range []struct {
		name   string
		window int64
		pause  int64 // in seconds
		model  string
		change func(*policy.Policy)
		want   events.Reason
	}{
		{"large window", 1_000_000, 5, priced, nil, events.ReasonCost},
		{"no price", 1_000_000, 5, "my-model", nil, events.ReasonCost},
		{"cold", 1_000_000, 301, priced, nil, events.ReasonCost},
		{"small window", 100_000, 5, priced, nil, events.ReasonThreshold},
		{"switched off", 500_000, 5, priced, func(p *policy.Policy) { p.Cache.History = 0 }, events.ReasonThreshold},
		{"caches do not count", 500_000, 5, priced, func(p *policy.Policy) { p.Cache.Seconds = 0 }, events.ReasonThreshold},
		{"a lower target", 500_000, 5, priced, func(p *policy.Policy) { p.Target = 100_000 }, events.ReasonThreshold},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := withoutSummaries()
			if x.change != nil {
				x.change(&p)
			}
			a := newAgent(t, configOf(t, p))
			b := firstCompaction(t, a, x.model, x.window, x.pause*1000)
			if b.Reason != x.want || b.TokensAfter > b.TargetTokens {
				t.Fatalf("%s at %d tokens; left %d for a target of %d", b.Reason, b.TokensBefore, b.TokensAfter, b.TargetTokens)
			}
			c, cold := b.Cache, x.pause > 300 || p.Cache.Seconds == 0
			if c.KeptTokens <= 0 || c.RewrittenTokens <= 0 || c.KeptTokens+c.RewrittenTokens > b.TokensAfter || c.Turns <= 0 || c.Cold != cold {
				t.Fatalf("cache: %+v, of %d tokens", c, b.TokensAfter)
			}
			lost, saved := c.RewrittenTokens*(6250-500), b.TokensSaved*500*c.Turns
			if cold {
				lost = 0
			}
			if x.model != priced {
				lost, saved = 0, 0
			}
			if c.Lost != lost || c.Saved != saved {
				t.Errorf("cache: %+v; want lost %d, saved %d", c, lost, saved)
			}
			if b.Reason == events.ReasonCost && (saved < 2*lost || b.TokensBefore >= b.Budget.TriggerTokens || b.TargetTokens >= b.Budget.TargetTokens) {
				t.Errorf("cleared at %d tokens to save %d for %d", b.TokensBefore, saved, lost)
			}
		})
	}
}

// firstCompaction publishes turns with a result each until the history is compacted.
func firstCompaction(t *testing.T, a *agent, model string, window, pause int64) *events.Compacted {
	t.Helper()
	for i := range 2000 {
		m := round(i)
		m[2].results[0].text = strings.Repeat("a line of words\n", 600)
		turn := object{"messages": messages(events.Anthropic, m...)}
		if i == 0 {
			turn["model"] = object{"provider": "anthropic", "name": model, "context_window": window, "max_output_tokens": 1000}
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
