package main

import (
	"context"
	"errors"
	"fmt"

	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
)

// runs are the numbers of compactions after which facts are looked for.
var runs = []struct {
	times int
	run   func(context.Context, *recording, summarize.Summarizer) ([]*kept, error)
	goal  goal // of the record, in tokens
}{
	{1, once, atMost(2500)},
	{10, tenTimes, atMost(4000)},
}

// evalRetention prints what is kept, by corpus, writer and number of compactions,
// and at last the worst of each.
func evalRetention(ctx context.Context, cs []*corpus, p printer) (err error) {
	ws, stop, err := writers()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	worst := make([]facts.Share, len(facts.Kinds)) // of nothing until there is a fact
	for _, run := range runs {
		record := int64(0)
		for _, c := range cs {
			for _, w := range ws {
				t := totals{shares: make([]facts.Share, len(facts.Kinds)), each: make([]spread, len(facts.Kinds))}
				for _, r := range c.sample(sampled) {
					all, err := run.run(ctx, r, w.summarizer)
					if err != nil {
						return fmt.Errorf("%s: %w", w.name, err)
					}
					t.add(all, p)
				}
				p.kept(fmt.Sprintf("%s/%s/%d", c.name, w.name, run.times), &t)
				record = max(record, t.record)
				for i, s := range t.shares {
					if s.All > 0 && (worst[i].All == 0 || s.Ratio() < worst[i].Ratio()) {
						worst[i] = s
					}
				}
			}
		}
		p.line(fmt.Sprintf("record_tokens_%d", run.times), float64(record), run.goal, "the largest")
	}
	for i, k := range facts.Kinds {
		if worst[i].All == 0 {
			p.note("retention_%s: no such facts", k.Name)
			continue
		}
		p.line("retention_"+k.Name, worst[i].Ratio(), atLeast(1), "the least, "+worst[i].String())
	}
	return nil
}

// totals are the figures of one writer.
type totals struct {
	shares      []facts.Share // by kind
	each        []spread      // by kind
	record      int64
	compactions int
}

func (t *totals) add(all []*kept, p printer) {
	own := make([]facts.Share, len(facts.Kinds))
	defer func() {
		for i, s := range own {
			t.each[i].add(s)
		}
	}()
	for _, k := range all {
		for i, s := range k.shares {
			own[i] = own[i].Plus(s)
			t.shares[i] = t.shares[i].Plus(s)
			for _, f := range k.lost[i] {
				p.note("lost: %s of %s: %q", facts.Kinds[i].Name, k.session, []string(f))
			}
		}
		t.record = max(t.record, k.record)
		t.compactions += len(k.units)
	}
}

// kept prints the figures of one writer. A share of no facts is none.
func (p printer) kept(name string, t *totals) {
	for i, k := range facts.Kinds {
		if t.shares[i].All == 0 {
			p.note("retention_%s/%s: no such facts", k.Name, name)
			continue
		}
		p.line("retention_"+k.Name+"/"+name, t.shares[i].Ratio(), goal{}, fmt.Sprintf("%s; %s", t.shares[i], &t.each[i]))
	}
	p.line("record_tokens/"+name, float64(t.record), goal{}, fmt.Sprintf("the largest of %d compactions", t.compactions))
}

// evalGrowth prints how summaries grow from the second compaction to the tenth:
// at most in any session that goes on with new work, and in a session that does
// the same work ten times.
func evalGrowth(ctx context.Context, c *corpus, p printer) error {
	worst, of := 0.0, &kept{}
	same, ofSame := 0.0, &kept{}
	for _, r := range c.sample(sampled) {
		k, err := retain(ctx, r, extract.New(), tenths(r), 10)
		if err != nil {
			return err
		}
		if g := k.growth(); g > worst {
			worst, of = g, k
		}
		again, err := repeat(r, 10)
		if err != nil {
			return err
		}
		if k, err = retain(ctx, again, extract.New(), tenths(again), 10); err != nil {
			return err
		}
		if g := k.growth(); g > same {
			same, ofSame = g, k
		}
	}
	if worst == 0 {
		p.note("summary_growth_10: no session is condensed ten times")
		return nil
	}
	p.line("summary_growth_10", worst, atMost(1.3), fmt.Sprintf("the worst: %s, UTF-16 units %v", of.session, of.units))
	p.line("summary_growth_10/same_work", same, goal{}, fmt.Sprintf("the worst: %s, UTF-16 units %v", ofSame.session, ofSame.units))
	return nil
}

// growth is the size after ten compactions over that after two, 0 of less than ten.
func (k *kept) growth() float64 {
	if len(k.units) < 10 {
		return 0
	}
	return float64(k.units[9]) / float64(k.units[1])
}
