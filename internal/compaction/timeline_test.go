package compaction_test

import (
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// A timeline has one scale: each turn has the input of the budget that it was decided on, corrected by the
// usages known then, and each compaction has the figures that were published, whatever was learned since.
func TestTimelineIsOfTheBudgets(t *testing.T) {
	a := newAgent(t, configOf(t, withoutSummaries()))
	var inputs []int64
	var published []*events.Compacted
	for i := range 150 {
		m := round(i)
		m[2].results[0].text = strings.Repeat("a line of words\n", 600)
		turn := object{"messages": messages(events.Anthropic, m...), "generation": a.ledger.Generation()}
		if i == 0 {
			turn["model"] = object{"provider": "anthropic", "name": "my-model", "context_window": 100_000, "max_output_tokens": 1000}
		}
		if i%3 == 2 {
			turn["usage"] = object{"input_tokens": a.ledger.Budget().EstimatedInput * 7 / 10, "output_tokens": 50}
		}
		a.now += 5_000
		outs := a.publish(turn)
		input := a.ledger.Budget().EstimatedInput
		for _, o := range outs {
			if b, ok := o.Body.(*events.Compacted); ok && b.Compacted {
				input, published = b.TokensBefore, append(published, b)
			}
		}
		inputs = append(inputs, input)
	}
	points, shifts := a.ledger.Timeline(a.config)
	if len(points) != len(inputs) || len(shifts) != len(published) || len(published) < 2 {
		t.Fatalf("%d points of %d turns, %d shifts of %d compactions", len(points), len(inputs), len(shifts), len(published))
	}
	saved, next := int64(0), 0
	for i, p := range points {
		if int64(p.Input) != inputs[i] || int64(p.Published) != inputs[i]+saved {
			t.Errorf("turn %d: %d tokens, %d without compactions; want %d and %d", i+1, p.Input, p.Published, inputs[i], inputs[i]+saved)
		}
		for ; next < len(shifts) && shifts[next].Turn == int64(i+1); next++ {
			s, b := shifts[next], published[next]
			if int64(s.Before) != b.TokensBefore || int64(s.Before-s.Saved) != b.TokensAfter || s.Before != p.Input {
				t.Errorf("generation %d: %+v; published %d to %d, at %d", next+1, s, b.TokensBefore, b.TokensAfter, p.Input)
			}
			saved += b.TokensSaved
		}
	}
	again, err := compaction.Restore(a.ledger.Address, a.ledger.Header(), a.ledger.Rows())
	if err != nil {
		t.Fatal(err)
	}
	if stored, _ := again.Timeline(a.config); !slices.Equal(stored, points) {
		t.Errorf("a ledger that was stored has %v; want %v", stored, points)
	}
}

// C12: the input of calls has a price: by its usage, with what was read of caches and written there, or by
// estimate, with a cache that is warm or cold. A model without prices spends nothing.
func TestSpentOnInput(t *testing.T) {
	const input, cached, write = 3000, 300, 3750 // of Claude Sonnet 4, in nano dollars a token
	spent := func(model string, pause int64, usage any) (first, second, had, all int64) {
		a := newAgent(t, configOf(t, withoutSummaries()))
		turn := object{"messages": messages(events.Anthropic, round(0)...), "model": object{"provider": "anthropic", "name": model}}
		if usage != nil {
			turn["usage"] = usage
		}
		a.publish(turn)
		first = a.ledger.Describe(a.config).Cost.Input
		a.now += pause
		a.publish(object{"messages": messages(events.Anthropic, msg{role: dialect.RoleUser, text: strings.Repeat("and then? ", 50)})})
		all = a.ledger.Budget().EstimatedInput
		a.publish(object{"messages": messages(events.Anthropic, msg{role: dialect.RoleAssistant, text: "Then it is done."})})
		return first, a.ledger.Describe(a.config).Cost.Input - first, first / write, all
	}
	const model = "claude-sonnet-4-20250514"
	first, _, _, _ := spent(model, 1000, object{"input_tokens": 10, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 300, "output_tokens": 5})
	if want := int64(10*input + 2000*cached + 300*write); first != want {
		t.Errorf("a call with a usage: %d, want %d", first, want)
	}
	const window = 200_000 // at most this is believed
	for _, usage := range []object{
		{"input_tokens": 1 << 40}, {"input_tokens": 10, "cache_read_input_tokens": 1 << 40}, {"cache_creation_input_tokens": 1 << 40},
	} {
		if first, _, _, _ := spent(model, 1000, usage); first != window*write {
			t.Errorf("a false usage: %d, want %d", first, window*write)
		}
	}
	if _, second, had, all := spent(model, 1000, nil); had <= 0 || second != had*cached+(all-had)*write {
		t.Errorf("a warm cache of %d of %d tokens: %d", had, all, second)
	}
	if _, second, _, all := spent(model, 400_000, nil); second != all*write {
		t.Errorf("a cold cache: %d, want %d", second, all*write)
	}
	if first, second, _, _ := spent("my-model", 1000, nil); first+second != 0 {
		t.Errorf("a model without prices: %d and %d", first, second)
	}
}
