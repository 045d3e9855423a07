package main

import (
	"context"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
)

// kept is what a session kept, over the compactions that count.
type kept struct {
	session string
	shares  []facts.Share   // by kind
	lost    [][]facts.Probe // by kind
	record  int64           // tokens, the most
	// failures has those of the condensed ranges.
	failures held
	units    []int // of the summary message, after each compaction
	// overfull states that a compaction was requested that came too late: the history
	// had outgrown its window.
	overfull bool
}

// retain publishes a session and requests a compaction after some numbers of
// turns. It compares facts from the compaction with number first on.
func retain(ctx context.Context, r *recording, s summarize.Summarizer, after []int, first int) (*kept, error) {
	c, err := compaction.NewConfig(byHand(), measure.DefaultWindows())
	if err != nil {
		return nil, err
	}
	k := &kept{session: r.name, shares: make([]facts.Share, len(facts.Kinds)), lost: make([][]facts.Probe, len(facts.Kinds))}
	p := newPlay(r, c, func(p *play, o compaction.Outcome) error {
		e := condensed(o)
		if e == nil {
			return nil
		}
		if k.units = append(k.units, sizeOf(p.made[e.Seq])); len(k.units) < first {
			return nil
		}
		return k.compare(p, o.View, e)
	})
	for i, t := range r.turns {
		if err := p.publish(i, t.at); err != nil {
			return nil, err
		}
		if !slices.Contains(after, i+1) {
			continue
		}
		k.overfull = k.overfull || !p.ledger.Budget().WithinBudget
		if err := p.compact(t.at); err != nil {
			return nil, err
		}
		if err := p.work(ctx, s, t.at); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// byHand is the default policy, but for compactions only on request, which remove as much as they
// can: the target is what a summary may cost, and little more.
func byHand() policy.Policy {
	p := policy.Default()
	p.Enabled, p.Target = false, 110_000
	return p
}

// compare looks for the facts of a condensed range in the history after it.
func (k *kept) compare(p *play, v *render.View, e *events.Edit) error {
	history, err := p.history(v)
	if err != nil {
		return err
	}
	f, lines := facts.Of(p.turnsRead(), *e.To), facts.Lines(history)
	for i, kind := range facts.Kinds {
		s, lost := lines.Holds(kind.Of(f))
		k.shares[i] = k.shares[i].Plus(s)
		k.lost[i] = append(k.lost[i], lost...)
	}
	k.failures.add(look(history, f, facts.Kinds[failures]))
	k.record = max(k.record, recordTokens(p.made[e.Seq]))
	return nil
}

// sizeOf is the size of the message that carries a summary, in UTF-16 units.
func sizeOf(s *events.Summary) int { return codec.Units(s.Message().Parts[0].Text) }

// recordTokens is what the record of a summary costs in a history.
func recordTokens(s *events.Summary) int64 {
	without := *s
	without.Record = nil
	rate := measure.NewRate(measure.Profiles["default"], "anthropic")
	return int64(rate.Text(int64(sizeOf(s) - sizeOf(&without))))
}

// tenths are the numbers of turns after each tenth of a session.
func tenths(r *recording) []int {
	var out []int
	for k := range 10 {
		out = append(out, len(r.turns)*(k+1)/10)
	}
	return out
}

// once compacts a session once: after one tenth of it, after two, up to the last
// that fits its window, since no more than a window is ever condensed at once.
func once(ctx context.Context, r *recording, s summarize.Summarizer) ([]*kept, error) {
	var out []*kept
	for _, n := range tenths(r) {
		k, err := retain(ctx, r, s, []int{n}, 1)
		if err != nil {
			return nil, err
		}
		if !k.overfull {
			out = append(out, k)
		}
	}
	return out, nil
}

// tenTimes compacts a session after every tenth, and compares from the second
// compaction on.
func tenTimes(ctx context.Context, r *recording, s summarize.Summarizer) ([]*kept, error) {
	k, err := retain(ctx, r, s, tenths(r), 2)
	return []*kept{k}, err
}
