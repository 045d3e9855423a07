package compaction_test

import (
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
)

// Errors of the reference system, each with the right behaviour instead.

// measured measures messages as one turn.
func measured(msgs []dialect.Message) []measure.Entry {
	var out []measure.Entry
	for i, m := range msgs {
		out = append(out, measure.Measure(m, measure.Entry{Seq: 1, Turn: 1, Index: uint32(i)})...)
	}
	return out
}

// B7, B9: whatever the target, something of a history stays, its first user message
// first of all; the reference's last resort can return nothing.
func TestSomethingStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		history := g.proper()
		format := rapid.SampledFrom(events.Formats()).Draw(t, "format")
		msgs, err := format.ReadAll(messages(format, history...))
		if err != nil || len(msgs) == 0 {
			t.Skip("an empty history")
		}
		p := withoutSummaries()
		target := measure.Tokens(rapid.Int64Range(-10, 50).Draw(t, "target"))
		plan := makePlan(measured(msgs), format, measure.NewRate(measure.Profiles["default"], ""), &p, 1000, target)
		got, _, err := render.Render(planView(plan, format), func(measure.Seq) ([]dialect.Message, error) { return msgs, nil })
		if err != nil || len(got) == 0 {
			t.Fatalf("%d messages of %d: %v", len(got), len(msgs), err)
		}
	})
}

// B2: the reference requests a compaction at 0.8 and acts above 1.0. Here the turn
// that reaches 0.8 is answered by a compaction that ends below it, wherever between
// 0.8 and 1.0 the turn ends.
func TestNoDeadZone(t *testing.T) {
	for percent := int64(80); percent <= 100; percent++ {
		a := newAgent(t, configOf(t, withoutSummaries()))
		r := measure.NewRate(measure.Profiles["default"], "openai")
		if early := compactions(a.publish(filled(r, 78))); len(early) > 0 {
			t.Fatalf("already at 78 %%: %+v", early)
		}
		missing := measure.Tokens(percent*100-a.ledger.Budget().EstimatedInput) - r.PerMessage + 1 // words may be one short
		emitted := compactions(a.publish(object{"messages": messages(events.OpenAI, msg{role: dialect.RoleUser, text: words(r, missing, "")})}))
		if len(emitted) != 1 || !emitted[0].Compacted || emitted[0].Budget.ShouldCompact {
			t.Errorf("%d %%: %+v", percent, emitted)
		}
	}
}

// filled is a turn that fills a window with room for 10,000 tokens of input
// to about so many percent, in many messages.
func filled(r measure.Rate, percent int64) object {
	list := []msg{{role: dialect.RoleUser, text: "Begin."}}
	for range 19 {
		list = append(list,
			msg{role: dialect.RoleAssistant, text: words(r, measure.Tokens(percent*100/40), "")},
			msg{role: dialect.RoleUser, text: words(r, measure.Tokens(percent*100/40), "")})
	}
	return object{
		"model":    object{"provider": "openai", "name": "m", "context_window": 10_100, "max_output_tokens": 100},
		"messages": messages(events.OpenAI, list...),
	}
}

// compactions are those among outcomes.
func compactions(outs []compaction.Outcome) (out []*events.Compacted) {
	for _, o := range outs {
		if c, ok := o.Body.(*events.Compacted); ok {
			out = append(out, c)
		}
	}
	return out
}

// B1: what a compaction did stays done: the next turn, and a ledger that was stored
// and restored, begin from the compacted history. The reference compacts a copy, and
// does so again before every call.
func TestCompactionPersists(t *testing.T) {
	a := newAgent(t, configOf(t, withoutSummaries()))
	r := measure.NewRate(measure.Profiles["default"], "openai")
	outs := compactions(a.publish(filled(r, 95)))
	if len(outs) != 1 || !outs[0].Compacted {
		t.Fatalf("%+v", outs)
	}
	after := a.ledger.Budget()
	rows, err := stored.Rows(a.ledger)
	if err != nil {
		t.Fatal(err)
	}
	if a.ledger, err = stored.ReadLedger(a.ledger.Address, rows); err != nil {
		t.Fatal(err)
	}
	compaction.Apply(a.ledger, nil, nil, a.config)
	if got := a.ledger.Budget(); got != after {
		t.Errorf("restored %+v, was %+v", got, after)
	}
	again := compactions(a.publish(object{"messages": messages(events.OpenAI, msg{role: dialect.RoleUser, text: "And now?"})}))
	if len(again) > 0 || a.ledger.Generation() != 1 || a.ledger.Budget().EstimatedInput > after.EstimatedInput+20 {
		t.Errorf("generation %d, %+v after %+v, emitted %+v", a.ledger.Generation(), a.ledger.Budget(), after, again)
	}
}
