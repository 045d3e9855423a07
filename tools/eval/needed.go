package main

import (
	"context"
	"fmt"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/exact"
	"compactd/internal/ops/facts"
	"compactd/internal/ops/needs"
	"compactd/internal/summarize/extract"
)

// targets are the shares of the available input that a compaction aims for, with the goals
// for identifiers and lines.
var targets = []struct {
	share         compaction.PPM
	idents, lines goal
	missed        goal // over what cutting the oldest misses
}{
	{600_000, atLeast(0.97), atLeast(0.95), atMost(0.25)},
	{450_000, goal{}, goal{}, goal{}},
	{300_000, atLeast(0.85), atLeast(0.80), goal{}},
	{200_000, goal{}, goal{}, goal{}},
	{120_000, atLeast(0.65), atLeast(0.60), goal{}},
}

// evalNeeded prints the share of what agents used after a compaction that the compacted
// history still has, beside the newest messages cut to the same number of tokens.
func evalNeeded(ctx context.Context, cs []*corpus, p printer) error {
	tokens, err := newSizes()
	if err != nil {
		return err
	}
	var all []*needs.Session
	read := map[*recording]*needs.Session{}
	for _, c := range cs {
		for _, r := range c.long() {
			read[r] = needs.Read(r.messages())
			all = append(all, read[r])
		}
	}
	common := needs.Common(all)
	if err := evalAgents(ctx, cs[0], tokens, read, common, p); err != nil {
		return err
	}
	for i, c := range cs {
		if len(c.long()) == 0 {
			continue
		}
		for _, t := range targets {
			for _, preset := range compaction.PresetNames() {
				policy, _ := compaction.Preset(preset)
				policy.Target = t.share
				n := &needed{sizes: tokens, common: common}
				for _, r := range c.long() {
					if err := n.measure(ctx, r, read[r], policy); err != nil {
						return err
					}
				}
				suffix := "/" + number(float64(t.share)/1e6)
				if i > 0 {
					suffix += "/" + c.name
				}
				goals := [3]goal{t.idents, t.lines, t.missed}
				if preset != "default" {
					suffix += "/" + preset
				}
				if i > 0 || preset != "default" {
					goals = [3]goal{}
				}
				n.print(p, suffix, goals)
			}
		}
	}
	return nil
}

// needed are the figures of some sessions under one policy.
type needed struct {
	sizes  *sizes
	common map[string]struct{}

	views, over int            // compactions, and those above their target
	tokens      int64          // of all views
	kept, cut   [2]facts.Share // identifiers, lines
	each        [2]spread
}

// view is a history after a compaction.
type view struct {
	turns int // in the log by then
	text  string
	size  int64
	over  bool // above its target
}

// measure plays a session, has each summary answered before the next turn, and looks up what
// the calls between two compactions needed in the history after the first.
func (n *needed) measure(ctx context.Context, r *recording, s *needs.Session, policy compaction.Policy) error {
	views, err := n.play(ctx, r, policy)
	if err != nil {
		return err
	}
	var kept, cut [2]facts.Share
	for i, v := range views {
		stop := s.Len()
		if i+1 < len(views) {
			stop = views[i+1].turns
		}
		want := s.After(v.turns, stop, n.common)
		has, baseline := want.In(v.text), want.In(n.sizes.newest(r, v.turns, v.size))
		n.tokens += v.size
		if n.views++; v.over {
			n.over++
			has = needs.Kept{}
		}
		kept[0] = kept[0].Plus(facts.Share{Kept: has.Idents, All: len(want.Idents)})
		kept[1] = kept[1].Plus(facts.Share{Kept: has.Lines, All: len(want.Lines)})
		cut[0] = cut[0].Plus(facts.Share{Kept: baseline.Idents, All: len(want.Idents)})
		cut[1] = cut[1].Plus(facts.Share{Kept: baseline.Lines, All: len(want.Lines)})
	}
	for i, k := range kept {
		n.kept[i], n.cut[i] = n.kept[i].Plus(k), n.cut[i].Plus(cut[i])
		n.each[i].add(k)
	}
	return nil
}

// play returns the histories after the compactions of a session.
func (n *needed) play(ctx context.Context, r *recording, policy compaction.Policy) ([]view, error) {
	c, err := compaction.NewConfig(policy, compaction.DefaultWindows())
	if err != nil {
		return nil, err
	}
	var views []view
	var jobs []*events.Job
	var p *play
	turns := 0
	p = newPlay(r, c, func(o compaction.Outcome) error {
		switch b := o.Body.(type) {
		case *events.Job:
			jobs = append(jobs, b)
		case *events.Compacted:
			if !b.Compacted {
				return nil
			}
			history, err := p.history(o.View)
			if err != nil {
				return err
			}
			for i := b.Through.Turn; i < int64(turns); i++ {
				history = append(history, r.turns[i].messages...)
			}
			v := view{turns: turns, text: needs.Text(history), size: n.sizes.of(history)}
			v.over = v.size > b.TargetTokens
			if k := len(views); k > 0 && views[k-1].turns == turns {
				views = views[:k-1] // another one before the agent's next call
			}
			views = append(views, v)
		}
		return nil
	})
	for i, t := range r.turns {
		turns = i + 1
		if err := p.publish(i, t.at); err != nil {
			return nil, err
		}
		for len(jobs) > 0 {
			j := jobs[0]
			jobs = jobs[1:]
			if err := p.summarize(ctx, extract.New(), j, t.at); err != nil {
				return nil, err
			}
		}
	}
	return views, nil
}

func (n *needed) print(p printer, suffix string, goals [3]goal) {
	for i, what := range []string{"needed_later", "needed_lines"} {
		if n.kept[i].All == 0 {
			p.note("%s%s: nothing was needed after the %d compactions", what, suffix, n.views)
			continue
		}
		p.line(what+suffix, n.kept[i].Ratio(), goals[i], fmt.Sprintf("%s; %s; %d compactions of %d tokens in the mean, %d above their target", n.kept[i], &n.each[i], n.views, n.tokens/int64(max(n.views, 1)), n.over))
		p.line(what[:len("needed_later")]+"_cut"+suffix, n.cut[i].Ratio(), goal{}, n.cut[i].String())
		if missed := n.cut[i].All - n.cut[i].Kept; missed > 0 {
			p.line(what+"_missed_over_cut"+suffix, float64(n.kept[i].All-n.kept[i].Kept)/float64(missed), goals[2], "")
		}
	}
}

// sizes counts tokens by the table of o200k.
type sizes struct {
	counter *exact.Counter
	known   map[string]int64
}

func newSizes() (*sizes, error) {
	c, err := exact.New("o200k")
	return &sizes{c, map[string]int64{}}, err
}

func (s *sizes) count(text string) int64 {
	n, ok := s.known[text]
	if !ok {
		n = s.counter.Count(text)
		s.known[text] = n
	}
	return n
}

func (s *sizes) of(history []events.Message) (n int64) {
	for i := range history {
		n += s.count(needs.Text(history[i : i+1]))
	}
	return n
}

// newest is the text of the newest messages of so many tokens, of the first so many turns.
// The oldest of them is cut, not left out.
func (s *sizes) newest(r *recording, turns int, tokens int64) (text string) {
	for t := turns - 1; t >= 0 && tokens > 0; t-- {
		for k := len(r.turns[t].messages) - 1; k >= 0 && tokens > 0; k-- {
			own := needs.Text(r.turns[t].messages[k : k+1])
			if n := s.count(own); n > tokens {
				own = own[int64(len(own))*(n-tokens)/n:]
			}
			text = own + text
			tokens -= s.count(own)
		}
	}
	return text
}
