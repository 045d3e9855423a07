package main

import (
	"context"
	"fmt"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/exact"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/tools/harness"
	"compactd/tools/needs"
)

// targets are the shares that a compaction aims for, with the goals for identifiers and lines,
// and for what is missed over what the newest messages of the same size miss.
var targets = []struct {
	share         measure.PPM
	idents, lines goal
	missed        goal
	presets       bool // the other presets are measured too
}{
	{600_000, atLeast(0.92), atLeast(0.90), atMost(0.6), true},
	{450_000, goal{}, goal{}, goal{}, false},
	{300_000, goal{}, goal{}, atMost(0.7), true},
	{200_000, goal{}, goal{}, goal{}, false},
	{120_000, goal{}, goal{}, atMost(0.75), true},
}

// evalNeeded prints the share of what agents used after a compaction that the compacted
// history still has, beside the newest messages cut to the same number of tokens.
func evalNeeded(ctx context.Context, cs []*corpus, p printer) error {
	e, err := newNeeding(cs)
	if err != nil {
		return err
	}
	if err := evalAgents(ctx, cs[0], e.sizes, e.read, e.common, p); err != nil {
		return err
	}
	for i, c := range cs {
		if len(c.long()) == 0 {
			continue
		}
		for _, t := range targets {
			for _, preset := range policy.PresetNames() {
				if preset != "default" && !t.presets {
					continue
				}
				policy, _ := policy.Preset(preset)
				policy.Target = t.share
				n, err := e.measure(ctx, c.long(), windowOf, policy, p)
				if err != nil {
					return err
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
				if preset == "default" && i == 0 && t.presets {
					n.printGroups(p, suffix)
				}
			}
		}
	}
	return e.modelWindows(ctx, cs[0], p)
}

// modelWindows prints the same under the default policy where each session has the window of its
// model: large windows are left to the cost of calls.
func (e *needing) modelWindows(ctx context.Context, c *corpus, p printer) error {
	none := func(*recording) measure.Tokens { return 0 }
	n, err := e.measure(ctx, c.long(), none, policy.Default(), p)
	if err != nil {
		return err
	}
	n.print(p, "/0.6/model_windows", [3]goal{})
	return nil
}

// needing is what all measures of needs share.
type needing struct {
	sizes  *sizes
	common map[string]struct{}
	read   map[*recording]*needs.Session
}

func newNeeding(cs []*corpus) (*needing, error) {
	tokens, err := newSizes()
	if err != nil {
		return nil, err
	}
	e := &needing{sizes: tokens, read: map[*recording]*needs.Session{}}
	var all []*needs.Session
	for _, c := range cs {
		for _, r := range c.long() {
			e.read[r] = needs.Read(r.messages())
			all = append(all, e.read[r])
		}
	}
	e.common = needs.Common(all)
	return e, nil
}

// windowOf is the window that a session is played in: 200,000 tokens, or where it is short so much
// less that half of its messages fit beside what its calls had before them.
func windowOf(r *recording) measure.Tokens {
	var history, before int64
	for i, t := range r.turns {
		for _, n := range t.tokens {
			history += n
		}
		if input := r.session.Turns[i].Input; before == 0 && input > 0 {
			before = max(input-history, 0)
		}
	}
	const ofWindow = 650_000 // what the output reserve leaves of it
	return min(200_000, measure.Tokens((before+history/2)*1_000_000/ofWindow))
}

// measure plays sessions under one policy, each in a window.
func (e *needing) measure(ctx context.Context, sessions []*recording, window func(*recording) measure.Tokens, policy policy.Policy, p printer) (*needed, error) {
	n := &needed{}
	for _, r := range sessions {
		policy.WindowTokens = window(r)
		s, err := e.session(ctx, r, policy)
		if err != nil {
			return nil, err
		}
		for _, f := range s.failures {
			p.note("no summary: session %s: %v", r.name, f)
		}
		n.sessions = append(n.sessions, s)
	}
	return n, nil
}

// needed are the figures of some sessions under one policy.
type needed struct{ sessions []*session }

// session are those of one.
type session struct {
	*recording
	views, over int            // compactions, and those above their target
	tokens      int64          // of all views
	calls       int64          // turns after a compaction
	kept, cut   [2]facts.Share // identifiers, lines
	below       [2]facts.Share // of the newest messages below the leading system messages
	each        [2]byCall
	unreached   int         // compactions whose outcome states that its target is out of reach
	used        facts.Share // identifiers that calls behind the range of a summary took from it, and those in view
	source      facts.Share // and those that are in view in front of these calls too
	lines       facts.Share // lines with identifiers in use that summaries took out of view, and those they keep
	failures    []error     // of summaries
}

func (s *session) add(o *session) {
	s.views, s.over, s.tokens, s.calls = s.views+o.views, s.over+o.over, s.tokens+o.tokens, s.calls+o.calls
	s.unreached, s.used, s.source, s.lines = s.unreached+o.unreached, s.used.Plus(o.used), s.source.Plus(o.source), s.lines.Plus(o.lines)
	for i := range s.kept {
		s.kept[i], s.cut[i], s.below[i] = s.kept[i].Plus(o.kept[i]), s.cut[i].Plus(o.cut[i]), s.below[i].Plus(o.below[i])
		s.each[i].add(o.each[i])
	}
}

// byCall sums up shares in which each call that needs something counts as one, however much it
// needs: one edit may have forty lines.
type byCall struct {
	kept, cut         float64
	calls, more, less int // more: the policy keeps more than cutting
}

func (b *byCall) add(o byCall) {
	b.kept, b.cut, b.calls, b.more, b.less = b.kept+o.kept, b.cut+o.cut, b.calls+o.calls, b.more+o.more, b.less+o.less
}

// call adds one that needs so many.
func (b *byCall) call(kept, cut, of int) {
	if of == 0 {
		return
	}
	one := byCall{kept: float64(kept) / float64(of), cut: float64(cut) / float64(of), calls: 1}
	switch {
	case kept > cut:
		one.more = 1
	case kept < cut:
		one.less = 1
	}
	b.add(one)
}

// total is the sum of those that match.
func (n *needed) total(match func(*session) bool) *session {
	all := &session{}
	for _, s := range n.sessions {
		if match == nil || match(s) {
			all.add(s)
		}
	}
	return all
}

// missedOverCut is how many identifiers, or lines, are missed for each that the newest messages
// miss; ok is false where those miss none.
func (s *session) missedOverCut(i int) (ratio float64, ok bool) {
	missed := s.cut[i].All - s.cut[i].Kept
	return float64(s.kept[i].All-s.kept[i].Kept) / float64(max(missed, 1)), missed > 0
}

// view is a history after a compaction.
type view struct {
	turns int // in the log by then
	text  string
	size  int64
	fixed int64 // of it, leading system messages
	over  bool  // above its target

	unreached bool // and its outcome states that no more may be removed
}

// session plays a session, has each summary answered before the next turn, and looks up what
// the calls between two compactions needed in the history after the first.
func (e *needing) session(ctx context.Context, r *recording, policy policy.Policy) (*session, error) {
	n := &session{recording: r}
	views, err := e.play(ctx, n, policy)
	if err != nil {
		return nil, err
	}
	s := e.read[r]
	for i, v := range views {
		stop := s.Len()
		if i+1 < len(views) {
			stop = views[i+1].turns
		}
		want := s.After(v.turns, stop, e.common)
		cut := e.sizes.newest(r, v.turns, v.size)
		has, baseline, below := want.In(v.text), want.In(cut), want.In(e.sizes.newest(r, v.turns, v.size-v.fixed))
		n.tokens, n.calls = n.tokens+v.size, n.calls+int64(stop-v.turns)
		if v.unreached {
			n.unreached++
		}
		if n.views++; v.over {
			n.over++
			has, v.text = needs.Kept{}, ""
		}
		for one := range s.EachAfter(v.turns, stop, e.common) {
			kept, left := one.In(v.text), one.In(cut)
			n.each[0].call(kept.Idents, left.Idents, len(one.Idents))
			n.each[1].call(kept.Lines, left.Lines, len(one.Lines))
		}
		for k, all := range [2]int{len(want.Idents), len(want.Lines)} {
			n.kept[k] = n.kept[k].Plus(facts.Share{Kept: [2]int{has.Idents, has.Lines}[k], All: all})
			n.cut[k] = n.cut[k].Plus(facts.Share{Kept: [2]int{baseline.Idents, baseline.Lines}[k], All: all})
			n.below[k] = n.below[k].Plus(facts.Share{Kept: [2]int{below.Idents, below.Lines}[k], All: all})
		}
	}
	return n, nil
}

// play returns the histories after the compactions of a session.
func (e *needing) play(ctx context.Context, n *session, policy policy.Policy) ([]view, error) {
	r := n.recording
	c, err := compaction.NewConfig(policy, measure.DefaultWindows())
	if err != nil {
		return nil, err
	}
	var views []view
	err = newPlay(r, c, func(p *play, o compaction.Outcome) error {
		b, ok := o.Body.(*events.Compacted)
		if !ok || !b.Compacted {
			return nil
		}
		history, err := p.history(o.View)
		if err != nil {
			return err
		}
		turns := p.published
		for i := b.Through.Turn; i < int64(turns); i++ {
			history = append(history, r.turns[i].messages...)
		}
		for _, x := range b.Stages {
			n.lines = n.lines.Plus(facts.Share{Kept: int(x.LinesKept), All: int(x.LinesMissing)})
		}
		if edit := condensed(o); edit != nil && edit.To != nil {
			e.addUsed(n, history, int(edit.To.Turn), turns)
		}
		v := view{turns: turns, text: needs.Text(history), size: e.sizes.of(history), fixed: e.sizes.of(leading(history))}
		v.unreached = slices.ContainsFunc(b.Notes, func(x events.Note) bool { return x.Code == events.CodeTargetUnreached })
		v.over = v.size > b.TargetTokens && !v.unreached
		if k := len(views); k > 0 && views[k-1].turns == turns {
			views = views[:k-1] // another one before the agent's next call
		}
		views = append(views, v)
		return nil
	}).run(ctx, n)
	return views, err
}

// Summarize implements [summarize.Summarizer] by the embedded one. Where that fails it notes why, as a worker publishes it.
func (s *session) Summarize(ctx context.Context, in summarize.Input) (*events.Summary, error) {
	made, err := extract.New().Summarize(ctx, in)
	if err != nil {
		s.failures = append(s.failures, err)
		return &events.Summary{Failure: "no summary"}, nil
	}
	return made, nil
}

// addUsed adds what calls behind the range of a summary took from it, as a history has it.
func (e *needing) addUsed(n *session, history []dialect.Message, to, turns int) {
	tail := 0
	for _, t := range n.turns[to:turns] {
		tail += len(t.messages)
	}
	want := e.read[n.recording].After(to, turns, e.common)
	for _, x := range []struct {
		share   *facts.Share
		history []dialect.Message
	}{{&n.used, history}, {&n.source, history[:max(len(history)-tail, 0)]}} {
		*x.share = x.share.Plus(facts.Share{Kept: want.In(needs.Text(x.history)).Idents, All: len(want.Idents)})
	}
}

// leading are the system messages that a history begins with.
func leading(history []dialect.Message) []dialect.Message {
	for i := range history {
		if history[i].Role != dialect.RoleSystem {
			return history[:i]
		}
	}
	return history
}

func (n *needed) print(p printer, suffix string, goals [3]goal) {
	all := n.total(nil)
	for i, what := range []string{"needed_later", "needed_lines"} {
		if all.kept[i].All == 0 {
			p.note("%s%s: nothing was needed after the %d compactions", what, suffix, all.views)
			continue
		}
		each := spread{}
		for _, s := range n.sessions {
			each.add(s.kept[i])
		}
		p.line(what+suffix, all.kept[i].Ratio(), goals[i], fmt.Sprintf("%s; %s; %d compactions of %d tokens in the mean, %d above their target, %d of targets out of reach", all.kept[i], &each, all.views, all.tokens/int64(max(all.views, 1)), all.over, all.unreached))
		p.line(what[:len("needed_later")]+"_cut"+suffix, all.cut[i].Ratio(), goal{}, all.cut[i].String())
		p.line(what[:len("needed_later")]+"_cut_below_system"+suffix, all.below[i].Ratio(), goal{}, all.below[i].String())
		if ratio, ok := all.missedOverCut(i); ok {
			p.line(what+"_missed_over_cut"+suffix, ratio, goals[2], "")
		}
		all.each[i].print(p, what+"_by_call"+suffix)
	}
	if all.used.All > 0 {
		p.line("used_since"+suffix, all.used.Ratio(), goal{}, all.used.String())
		p.line("used_since_source"+suffix, all.source.Ratio(), goal{}, all.source.String())
	}
	if all.lines.All > 0 {
		p.line("used_since_kept"+suffix, all.lines.Ratio(), goal{}, all.lines.String()+" lines")
	}
}

func (b *byCall) print(p printer, name string) {
	n := float64(b.calls)
	p.line(name, b.kept/n, goal{}, fmt.Sprintf("cut %s; of %d calls the history has more than cutting for %d, less for %d", number(b.cut/n), b.calls, b.more, b.less))
	if missed := n - b.cut; missed > 0 {
		p.line(name+"/missed_over_cut", (n-b.kept)/missed, goal{}, "")
	}
}

// printGroups prints what is missed of the sessions of each harness, and of each quarter of the
// sessions by what they keep.
func (n *needed) printGroups(p printer, suffix string) {
	for i, what := range []string{"needed_later", "needed_lines"} {
		var names []string
		for _, s := range n.sessions {
			if !slices.Contains(names, s.harness) {
				names = append(names, s.harness)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			count := 0
			of := n.total(func(s *session) bool {
				if s.harness == name {
					count++
				}
				return s.harness == name
			})
			if of.kept[i].All > 0 {
				g := goal{}
				if count >= 3 {
					g = atLeast(of.cut[i].Ratio())
				}
				p.line(what+suffix+"/"+name, of.kept[i].Ratio(), g, fmt.Sprintf("%s; cut %s; %d sessions, %d compactions", of.kept[i], number(of.cut[i].Ratio()), count, of.views))
			}
		}
		var own []float64
		for _, s := range n.sessions {
			if s.kept[i].All > 0 {
				own = append(own, s.kept[i].Ratio())
			}
		}
		if len(own) >= 4 {
			p.line(what+suffix+"/quartile", harness.Quantile(own, 0.25), goal{}, fmt.Sprintf("of sessions; the median %s, the third %s", number(harness.Quantile(own, 0.5)), number(harness.Quantile(own, 0.75))))
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

func (s *sizes) of(history []dialect.Message) (n int64) {
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
