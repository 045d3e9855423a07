package compaction_test

import (
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// numberlessProvider takes inputs up to a limit that it never states, whatever the table has.
type numberlessProvider struct {
	limit    measure.Tokens
	permille int64 // of our estimate, that it counts
}

func (p *numberlessProvider) count(history []codec.Raw, r measure.Rate) int64 {
	var sum measure.Tokens
	msgs, err := events.Anthropic.ReadAll(history)
	if err != nil {
		panic(err)
	}
	for i := range msgs {
		for _, e := range measure.Measure(msgs[i], measure.Entry{Seq: 1, Index: uint32(i)}) {
			sum += r.Entry(&e)
		}
	}
	return int64(sum) * p.permille / 1000
}

// B2: a refusal that states no number teaches the window: one is enough for a run of a
// hundred calls, with or without usages, and what was learnt holds until the model changes.
func TestRefusalWithoutNumber(t *testing.T) {
	config := configOf(t, withoutSummaries())
	rapid.Check(t, func(t *rapid.T) {
		p := &numberlessProvider{measure.Tokens(rapid.IntRange(20_000, 120_000).Draw(t, "limit")), int64(rapid.IntRange(900, 1_200).Draw(t, "permille"))}
		usage := rapid.Bool().Draw(t, "usage")
		a := newAgent(t, config)
		model := object{"provider": "anthropic", "name": "claude-sonnet-4", "context_window": 200_000, "max_output_tokens": 8_000}
		r := measure.NewRate(measure.Profiles["default"], "anthropic")
		history := messages(events.Anthropic, msg{role: "user", text: "Begin."})
		a.publish(object{"turn": 1, "model": model, "messages": history})
		apply := func(outs []compaction.Outcome) {
			for _, o := range outs {
				if o.View == nil {
					continue
				}
				raws, err := a.render(o.View)
				if err != nil {
					t.Fatal(err)
				}
				history = raws
			}
		}
		refusals := 0
		step := int(p.limit) / rapid.IntRange(20, 40).Draw(t, "steps")
		for turn := 2; turn < 100; turn++ {
			input := p.count(history, r)
			for tries := 0; input > int64(p.limit); tries++ {
				if refusals++; tries == 5 {
					t.Fatalf("refused %d times in a row at %d of %d", tries, input, p.limit)
				}
				a.seq++
				outs, next := compaction.Decide(a.ledger, compaction.NewOverflow(compaction.Overflow{Generation: -1}, "", a.seq), config)
				next.Install(a.ledger)
				apply(outs)
				input = p.count(history, r)
			}
			size := measure.Tokens(rapid.IntRange(step/2, step).Draw(t, "size"))
			added := messages(events.Anthropic, msg{role: "assistant", text: words(r, size/2, "")}, msg{role: "user", text: words(r, size/2, "")})
			event := object{"turn": turn, "generation": a.ledger.Generation(), "messages": added}
			if usage {
				event["usage"] = object{"input_tokens": input, "output_tokens": size / 2}
			}
			history = append(history, added...)
			apply(a.publish(event))
		}
		t.Logf("%d refusals at a limit of %d", refusals, p.limit)
		if refusals > 1 {
			t.Fatalf("%d refusals", refusals)
		}
		before := a.ledger.Window()
		a.publish(object{"turn": 100, "model": object{"provider": "anthropic", "name": "claude-opus-4-5", "context_window": 200_000}, "messages": []object{}})
		if after := a.ledger.Window(); refusals > 0 && before >= 200_000 || after != 200_000 {
			t.Fatalf("the window is %d, and %d with another model", before, after)
		}
	})
}
