package compaction_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// countingProvider takes inputs up to a limit, and counts something else than we estimate: one
// multiple for early messages, which begin with early, and another one for later messages.
type countingProvider struct {
	rate                  measure.Rate
	limit                 measure.Tokens
	early, late           int64 // permille of our estimate
	statesLimit, statesIs bool
}

const early = "early "

func (p *countingProvider) count(t fataler, history []codec.Raw) (sum measure.Tokens) {
	for _, raw := range history {
		m, err := events.Anthropic.Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		permille := p.late
		if strings.Contains(string(raw), early) {
			permille = p.early
		}
		for _, e := range measure.Measure(m, measure.Entry{Seq: 1}) {
			sum += p.rate.Entry(&e) * measure.Tokens(permille) / 1000
		}
	}
	return sum
}

// refusal is what the provider reports of an input that is too long.
func (p *countingProvider) refusal(input measure.Tokens) *compaction.Overflow {
	o := &compaction.Overflow{Generation: -1}
	if p.statesLimit {
		o.Limit = p.limit
	}
	if p.statesIs {
		o.Actual = input
	}
	return o
}

// A5, B2, D4, D5: whatever a provider counts, and whether it states numbers or not, each refusal
// is followed by a smaller history, and soon by one that is taken: the first one where it counts
// the same multiple of our estimate for all content. A history above the available input has the
// code for it. Refusals do not go on with the session.
func TestRefusals(t *testing.T) {
	config := configOf(t, withoutSummaries())
	rapid.Check(t, func(t *rapid.T) {
		p := &countingProvider{
			rate:        measure.NewRate(measure.Profiles["default"], "anthropic"),
			limit:       measure.Tokens(rapid.IntRange(12_000, 120_000).Draw(t, "limit")),
			early:       rapid.Int64Range(600, 1_600).Draw(t, "early"),
			statesLimit: rapid.Bool().Draw(t, "states limit"), statesIs: rapid.Bool().Draw(t, "states count"),
		}
		if !p.statesLimit {
			p.limit = max(p.limit, 22_000) // what is learnt is never below a tenth of the window
		}
		p.late = p.early
		if rapid.Bool().Draw(t, "changes") {
			p.late = rapid.Int64Range(600, 1_600).Draw(t, "late")
		}
		usage := rapid.Bool().Draw(t, "usage")
		a := newAgent(t, config)
		history := messages(events.Anthropic, msg{role: "user", text: early + "begin."})
		a.publish(object{"turn": 1, "model": object{"provider": "anthropic", "name": "claude-sonnet-4", "context_window": 200_000, "max_output_tokens": 1_000}, "messages": history})
		apply := func(outs []compaction.Outcome) {
			for _, o := range outs {
				c, ok := o.Body.(*events.Compacted)
				if !ok {
					continue
				}
				if b := c.Budget; b.WithinBudget != (b.EstimatedInput <= b.AvailableInput) || b.WithinBudget != (c.Code != events.CodeBudgetExceeded) || b.WithinBudget != (c.Retry == nil) {
					t.Fatalf("%s: code %q, retry %v: %d of %d", c.Reason, c.Code, c.Retry, b.EstimatedInput, b.AvailableInput)
				}
				if o.View == nil {
					continue
				}
				var err error
				if history, err = a.render(o.View); err != nil {
					t.Fatal(err)
				}
			}
		}
		step := int(p.limit) / rapid.IntRange(10, 40).Draw(t, "steps")
		refusals, head := 0, early
		for turn := 2; turn < 100; turn++ {
			if turn == 50 {
				head = ""
			}
			input := p.count(t, history)
			for tries := 1; input > p.limit; tries++ {
				refusals++
				a.seq++
				outs, next := compaction.Decide(a.ledger, compaction.NewOverflow(*p.refusal(input), "", a.seq), config)
				next.Install(a.ledger)
				apply(outs)
				was := input
				if input = p.count(t, history); input >= was {
					t.Fatalf("turn %d: refused at %d, and answered with %d", turn, was, input)
				}
				t.Logf("turn %d: refused at %d of %d, then %d; budget %+v", turn, was, p.limit, input, a.ledger.Budget())
				if input > p.limit && (tries == 3 || tries == 1 && p.early == p.late) {
					t.Fatalf("turn %d: refused %d times in a row, and then %d of %d", turn, tries, input, p.limit)
				}
			}
			size := measure.Tokens(rapid.IntRange(step/2, step).Draw(t, "size"))
			added := messages(events.Anthropic, msg{role: "assistant", text: words(p.rate, size/2, head)}, msg{role: "user", text: words(p.rate, size/2, head)})
			event := object{"turn": turn, "generation": a.ledger.Generation(), "messages": added}
			if usage {
				event["usage"] = object{"input_tokens": input, "output_tokens": size / 2}
			}
			history = append(history, added...)
			apply(a.publish(event))
		}
		most := 1
		if !usage { // one refusal is all that shows what later content costs
			most++
		}
		if p.early != p.late && !p.statesLimit {
			most = 3
		} else if p.early != p.late {
			most++
		}
		if refusals > most {
			t.Fatalf("%d refusals", refusals)
		}
	})
}

// A8: in every mode of every preset and profile the trigger is within the available input, and
// that within what each model takes.
func TestInputWithinLimits(t *testing.T) {
	models := measure.DefaultWindows()
	models["openai"]["gpt-5-2025-08-07"], models["azure"]["gpt-6.2-sol"], models["openrouter"]["openai/gpt-5.5"] = 400_000, 1_050_000, 1_050_000
	for _, preset := range policy.PresetNames() {
		for _, mode := range []string{"ratio", "tokens", "buffer"} {
			for profile := range measure.Profiles {
				p, _ := policy.Preset(preset)
				p.TriggerMode, p.ThresholdTokens, p.Profile = mode, 100_000_000, profile
				config := configOf(t, p)
				for provider, names := range models {
					for name := range names {
						for _, stated := range []object{{}, {"context_window": 500_000}, {"max_output_tokens": 900}} {
							stated["provider"], stated["name"] = provider, name
							a := newAgent(t, config)
							a.publish(object{"turn": 1, "model": stated, "messages": messages(events.OpenAI, msg{role: "user", text: "Begin."}), "format": "openai"})
							b, most := a.ledger.Budget(), int64(measure.InputLimit(name))
							if b.AvailableInput <= 0 || b.TriggerTokens > b.AvailableInput || b.LimitTokens > b.AvailableInput || b.AvailableInput > b.ContextWindow ||
								b.OutputReserve != b.ContextWindow-b.AvailableInput || most > 0 && b.AvailableInput > most {
								t.Fatalf("%s, %s, %s, %v: %+v of %d", preset, mode, profile, stated, b, most)
							}
						}
					}
				}
			}
		}
	}
}
