package main

import (
	"context"
	"errors"
	"fmt"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
)

// evalFailures prints what histories have of failures, when a model writes nothing of use: word
// by word, and at least the turns where they stand. It looks after each of ten compactions
// that condense all they can, and after each one under the default policy.
func evalFailures(ctx context.Context, cs []*corpus, p printer) (err error) {
	ws, stop, err := writers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	model := ws[len(ws)-1].summarizer
	var worst held
	for i, c := range cs {
		for _, run := range []struct {
			name string
			play func(*recording) (held, error)
		}{
			{"10", func(r *recording) (held, error) { return failuresCondensed(ctx, r, model) }},
			{"default", func(r *recording) (held, error) {
				s, err := live(ctx, r, model, 1)
				if err != nil {
					return held{}, err
				}
				return s.facts[failures], nil
			}},
		} {
			var all held
			each := spread{}
			for _, r := range c.sample(sampled) {
				h, err := run.play(r)
				if err != nil {
					return err
				}
				all.add(h)
				each.add(h.verbatim)
			}
			if all.verbatim.All == 0 {
				p.note("failures/%s/%s: none", c.name, run.name)
				continue
			}
			p.line(fmt.Sprintf("failures_addressable/%s/%s", c.name, run.name), all.addressable.Ratio(), goal{}, all.addressable.String())
			p.line(fmt.Sprintf("failures_verbatim/%s/%s", c.name, run.name), all.verbatim.Ratio(), goal{}, fmt.Sprintf("%s; %s", all.verbatim, &each))
			if i == 0 {
				worst = least(worst, all)
			}
		}
	}
	if worst.verbatim.All > 0 {
		p.line("failures_addressable", worst.addressable.Ratio(), atLeast(1), "the least of the first sessions, "+worst.addressable.String())
		p.line("failures_verbatim", worst.verbatim.Ratio(), atLeast(0.95), "the least of the first sessions, "+worst.verbatim.String())
	}
	return nil
}

// failures is their place among the kinds of facts.
const failures = 2

// failuresCondensed compacts a session after every tenth of it.
func failuresCondensed(ctx context.Context, r *recording, by summarize.Summarizer) (held, error) {
	k, err := retain(ctx, r, by, tenths(r), 1)
	if err != nil {
		return held{}, err
	}
	return k.failures, nil
}

// least puts the lower shares of two together.
func least(a, b held) held {
	if a.verbatim.All == 0 {
		return b
	}
	if b.verbatim.Ratio() < a.verbatim.Ratio() {
		a.verbatim = b.verbatim
	}
	if b.addressable.Ratio() < a.addressable.Ratio() {
		a.addressable = b.addressable
	}
	return a
}

// stay is what a session kept that was published as it is.
type stay struct {
	turns  int
	units  []int     // of the summary message in view, after each compaction that put one there
	shares []float64 // of the available input that it takes
	checks int
	facts  []held // by kind, over all checks
}

// live publishes a session under the default policy. Each summary comes before the next turn.
// Facts are looked for after every so many compactions.
func live(ctx context.Context, r *recording, by summarize.Summarizer, every int) (*stay, error) {
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		return nil, err
	}
	s := &stay{turns: len(r.turns), facts: make([]held, len(facts.Kinds))}
	done := 0
	return s, newPlay(r, config, func(p *play, o compaction.Outcome) error {
		b, ok := o.Body.(*events.Compacted)
		if !ok || !b.Compacted {
			return nil
		}
		if made := summaryIn(p, o.View); made != nil {
			s.units = append(s.units, sizeOf(made))
			s.shares = append(s.shares, float64(estimate.Text(int64(sizeOf(made))))/float64(b.Budget.AvailableInput))
		}
		if done++; done%every == 0 {
			return s.check(p, o.View, b.Through.Turn)
		}
		return nil
	}).run(ctx, by)
}

// check looks for the facts of the first turns in a history and the turns behind it.
func (s *stay) check(p *play, v *render.View, through int64) error {
	history, err := p.history(v)
	if err != nil {
		return err
	}
	for _, t := range p.turns[through:p.published] {
		history = append(history, t.messages...)
	}
	s.checks++
	f := facts.Of(p.turnsRead()[:p.published], events.Position{Turn: int64(p.published) + 1})
	for i, k := range facts.Kinds {
		s.facts[i].add(look(history, f, k))
	}
	return nil
}

// summaryIn is the summary that a view shows, nil for none.
func summaryIn(p *play, v *render.View) *events.Summary {
	for i := range v.Entries {
		if s := p.made[uint64(v.Entries[i].Seq)]; s != nil {
			return s
		}
	}
	return nil
}
