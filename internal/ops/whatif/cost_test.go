package whatif

import (
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// C12: a call pays the price of the cache for what the provider has read within five minutes and
// nothing has changed since, and the price of a write for the rest.
func TestCharge(t *testing.T) {
	const k = 1000
	price := measure.Prices{Input: 10, Cached: 1, Write: 12, Output: 50}
	for _, x := range []struct {
		name   string
		cache  cache
		saved  measure.Tokens
		newest measure.Tokens
		want   Costs
	}{
		{"the first call", cache{read: -1 << 40}, 0, 10 * k, Costs{Calls: 1, Input: 10 * k * 12}},
		{"a warm cache", cache{read: 0, all: 8 * k, same: 8 * k}, 0, 2 * k, Costs{Calls: 1, Input: 8*k*1 + 2*k*12}},
		{"a compaction broke it", cache{read: 0, all: 8 * k, same: 3 * k}, 4 * k, 2 * k, Costs{Calls: 1, Input: 3*k*1 + 7*k*12, Saved: 4 * k, Lost: 5 * k * 11, LostTokens: 5 * k}},
		{"what is gone is not lost", cache{read: 0, all: 30 * k, same: 3 * k}, 22 * k, 0, Costs{Calls: 1, Input: 3*k*1 + 7*k*12, Saved: 22 * k, Lost: 7 * k * 11, LostTokens: 7 * k}},
		{"nor is what the turn brought", cache{read: 0, all: 30 * k, same: 3 * k}, 22 * k, 2 * k, Costs{Calls: 1, Input: 3*k*1 + 7*k*12, Saved: 22 * k, Lost: 5 * k * 11, LostTokens: 5 * k}},
		{"nothing is lost where the turn is all that differs", cache{read: 0, all: 30 * k, same: 3 * k}, 22 * k, 8 * k, Costs{Calls: 1, Input: 3*k*1 + 7*k*12, Saved: 22 * k}},
		{"a cold cache loses nothing", cache{read: -1 << 40, all: 8 * k, same: 3 * k}, 4 * k, 2 * k, Costs{Calls: 1, Input: 10 * k * 12, Saved: 4 * k * 12}},
	} {
		w := &simulation{ruler: newRuler(measure.DefaultPrices()), cache: x.cache, sum: newFigures()}
		w.ruler.prices, w.ruler.priced = price, true
		w.ruler.history = 10*k - w.ruler.fixed()
		w.sum.taken = x.saved
		if w.charge(cacheFor.Milliseconds(), x.newest); w.sum.Costs != x.want {
			t.Errorf("%s: %+v, not %+v", x.name, w.sum.Costs, x.want)
		}
		if w.cache != (cache{read: cacheFor.Milliseconds(), all: 10 * k, same: 10 * k}) {
			t.Errorf("%s: the cache holds %+v", x.name, w.cache)
		}
	}
	w := &simulation{ruler: newRuler(measure.DefaultPrices()), sum: newFigures()}
	w.charge(0, 0)
	w.chargeSummary(&events.Job{}, 1, 1)
	if w.sum.Costs != (Costs{}) {
		t.Errorf("a model without a price costs %+v", w.sum.Costs)
	}
}

// C12: on recorded sessions the baseline that never compacts loses and saves nothing; one that does
// loses no more of its caches than calls carried. The one that cuts uses the last stage alone, at the
// same trigger.
func TestCosts(t *testing.T) {
	own := preset(t, "default")
	columns := []Policy{own}
	for _, name := range []string{"cut", "none"} {
		b, err := Baseline(name, own.Config)
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, b)
	}
	r := NewReport(columns, Options{NoFacts: true})
	for _, s := range examples(t, "example-rename-flag*") {
		if err := r.Add(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	some, cut, none := r.Policies[0], r.Policies[1], r.Policies[2]
	if c := none.Costs; c.Calls == 0 || c.Input <= 0 || c != (Costs{Calls: c.Calls, Input: c.Input}) || none.Compactions > 0 {
		t.Errorf("without compactions: %+v", c)
	}
	if c := some.Costs; c.Calls != none.Costs.Calls || c.Saved <= 0 || c.Lost <= 0 || c.LostTokens > some.Sent || c.All() != c.Input+c.Summaries {
		t.Errorf("with compactions: %+v", c)
	}
	if n := cut.Stages[events.StageTruncate]; n == 0 || n != cut.Compactions || len(cut.Stages) != 1 || cut.Summaries.Requested > 0 {
		t.Errorf("cutting: %d compactions by %v, %d summaries requested", cut.Compactions, cut.Stages, cut.Summaries.Requested)
	}
}
