package compaction_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/traits"
	"compactd/internal/events/validate"
	"compactd/internal/stored"
)

// The outcome of a history that its provider takes is valid as it stands, no
// larger than planned, and made of whole pairs; the first user message and calls
// open at the end are in it byte for byte.
func TestProperHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		history := g.proper()
		if v := validate.Messages(g.format, messages(g.format, history...)); len(v) > 0 {
			t.Fatalf("the generated history is not valid: %v", v)
		}
		w := newWitness(g)
		for _, turn := range g.turns(history) {
			w.wholeJobs = !g.noIDs
			w.publish(turn, func(c *events.Compacted, raw []codec.Raw) {
				w.emittedValid(c, raw)
				w.noRepairs(raw)
				w.keepsFirstUser(raw)
				w.keepsOpenCalls(raw)
				w.keepsServed(raw)
				w.returns(c, raw)
			})
			w.original()
		}
	})
}

// Whatever the history, what is emitted is valid for its provider.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		w := newWitness(g)
		for _, turn := range g.turns(g.anything()) {
			w.publish(turn, func(c *events.Compacted, raw []codec.Raw) { w.emittedValid(c, raw) })
		}
	})
}

// Turns that come twice, late, or retract others: the ledger is the same whether
// outcomes are fresh or read back, and whether it was kept or restored.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		turns := g.turns(g.anything())
		w := newWitness(g)
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			turn := maps.Clone(rapid.SampledFrom(turns).Draw(t, "turn"))
			last := int(w.ledger.LastTurn())
			switch rapid.IntRange(0, 9).Draw(t, "how") {
			case 0, 1, 2:
				turn["turn"] = last + 1
			case 3:
				delete(turn, "turn")
			case 4, 5:
				turn["turn"] = last + 1 + rapid.IntRange(1, 3).Draw(t, "gap")
			case 6, 7:
				k := rapid.IntRange(1, last+1).Draw(t, "from")
				turn["turn"], turn["replaces_from"] = k, k
			}
			if g.odds(10, "model") {
				turn["model"] = object{"provider": g.provider(), "context_window": 2000, "max_output_tokens": 400}
			}
			w.publish(turn, func(*events.Compacted, []codec.Raw) {}) // ids of calls come twice, which nothing repairs
		}
	})
}

// Turns give the same ledger in whatever order they come.
func TestGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		turns := g.turns(g.anything())
		for _, turn := range turns {
			turn["format"] = g.format
		}
		turns[0]["model"] = object{"provider": "openai", "name": "m", "context_window": 1 << 30}
		turns[0]["policy"] = object{"trigger_mode": "ratio", "prune": object{"micro": object{"every_turn": false}}, "tool_output": object{"when": "compaction"}} // nothing is compacted
		for _, turn := range turns {
			delete(turn, "usage") // it may fill any window
		}
		order := make([]int, len(turns))
		for i := range order {
			order[i] = i
		}
		config := g.config()
		ledger := func(order []int) compaction.Dump {
			a := newAgent(t, config)
			for _, i := range order {
				turn, err := a.readAt(turns[i], measure.Seq(i+1))
				if err != nil {
					t.Fatal(err)
				}
				_, next := compaction.Decide(a.ledger, turn, a.config)
				next.Install(a.ledger)
			}
			return a.ledger.Dump()
		}
		sameLedger(t, ledger(order), ledger(rapid.Permutation(order).Draw(t, "order")))
	})
}

// witness publishes turns, and checks with each what holds for all of them. Its
// twin keeps the ledger of a worker that reads outcomes back.
type witness struct {
	*agent
	g        *generator
	restored *compaction.Ledger
	rows     map[string][]byte // of the twin, as stored

	broken    bool          // no provider takes its history: a repair may give the next plan more to do, and lines between messages cost a little
	jobs      []*events.Job // all there were: answered once, twice, or never
	wholeJobs bool          // jobs part no call from its result, by its id

	requested map[events.Cause]bool    // compactions requested by hand, without an answer so far
	emitted   map[int64][]codec.Raw    // history of each generation
	demands   map[int64]traits.Demands // of the provider then
}

func newWitness(g *generator) *witness {
	a := newAgent(g.T, g.config())
	return &witness{
		agent: a, g: g, restored: compaction.NewLedger(a.ledger.Address), rows: map[string][]byte{},
		requested: map[events.Cause]bool{}, emitted: map[int64][]codec.Raw{}, demands: map[int64]traits.Demands{},
	}
}

func (w *witness) publish(turn object, emitted func(*events.Compacted, []codec.Raw)) {
	w.now += rapid.SampledFrom([]int64{0, 1000, 5 * 60 * 1000, 40 * 60 * 1000}).Draw(w.g.T, "time")
	t, err := w.read(turn)
	if err != nil {
		return // before the first turn a message may be of another dialect
	}
	w.event(t, func() compaction.Input {
		t, err := w.readAt(turn, w.seq)
		if err != nil {
			w.t.Fatal(err)
		}
		return t
	}, emitted)
	for len(w.jobs) > 0 && w.g.odds(40, "answer") {
		w.answer(emitted)
	}
	if w.g.odds(30, "request") {
		w.ask(emitted)
	}
}

// ask requests something of the session: B13, B21, D4.
func (w *witness) ask(emitted func(*events.Compacted, []codec.Raw)) {
	w.seq++
	read := func() *compaction.Request { return nil }
	switch rapid.IntRange(0, 2).Draw(w.g.T, "kind") {
	case 0:
		body := object{"focus": "the parser"}
		if w.g.odds(30, "own policy") {
			body["policy"] = codec.Raw(`{"summarize":{"enabled":false},"truncate":{"enabled":true}}`)
		}
		if w.g.odds(30, "own model") {
			body["model"] = object{"provider": "mistral", "name": w.g.model, "context_window": 2000, "max_output_tokens": 400}
		}
		read = w.reader(events.KindCompact, body)
		if w.ledger.LastTurn() > 0 {
			w.requested[events.Cause{Seq: uint64(w.seq)}] = true
		}
	case 1:
		body := object{"steps": rapid.IntRange(1, 3).Draw(w.g.T, "steps")}
		if w.g.odds(60, "by number") {
			body = object{"generation": rapid.IntRange(0, int(w.ledger.Generation())+1).Draw(w.g.T, "to")}
		}
		read = w.reader(events.KindRewind, body)
	case 2:
		o := compaction.Overflow{
			Limit:      measure.Tokens(rapid.SampledFrom([]int{0, 500, 3000}).Draw(w.g.T, "limit")),
			Actual:     measure.Tokens(rapid.SampledFrom([]int{0, 1, 3500, 1 << 40}).Draw(w.g.T, "actual")),
			Generation: rapid.Int64Range(-1, w.ledger.Generation()+1).Draw(w.g.T, "applied"),
			Media:      w.g.odds(20, "media"),
		}
		seq := w.seq
		read = func() *compaction.Request { return compaction.NewOverflow(o, "", seq) }
	}
	now := func() compaction.Input { r := read(); r.Time = w.now; return r }
	w.event(now(), now, emitted)
}

func (w *witness) reader(k events.Kind, body object) func() *compaction.Request {
	seq := w.seq
	return func() *compaction.Request {
		r, err := stored.ReadRequest(k, raws(body)[0], seq)
		if err != nil {
			w.t.Fatal(err)
		}
		return r
	}
}

// answer publishes a result of some job: of the last, of one that had its result,
// or of one that no ledger waits for.
func (w *witness) answer(emitted func(*events.Compacted, []codec.Raw)) {
	job := w.jobs[len(w.jobs)-1]
	if w.g.odds(30, "any job") {
		job = rapid.SampledFrom(w.jobs).Draw(w.g.T, "job")
	}
	s := summary(job.ID, rapid.Int64Range(0, job.MaxUnits).Draw(w.g.T, "units"))
	switch {
	case w.g.odds(20, "failed"):
		s = failure(job.ID)
	case w.g.odds(10, "too large"):
		s = summary(job.ID, job.MaxUnits+1)
	}
	w.event(w.result(s), func() compaction.Input { return w.resultAt(s, w.seq) }, emitted)
}

// event decides on an event and applies it. again reads it for the twin.
func (w *witness) event(in compaction.Input, again func() compaction.Input, emitted func(*events.Compacted, []codec.Raw)) {
	outs, next := w.decide(in)
	next.Install(w.ledger)
	w.applyRecorded(again, outs)
	w.partition()
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Job:
			w.jobs = append(w.jobs, b)
			w.job(b)
		case *events.BudgetChanged:
			w.same("budget", b.Budget, w.ledger.Budget())
		case *events.Compacted:
			w.same("budget", b.Budget, w.ledger.Budget())
			w.same("through", b.Through, events.Through{Seq: w.ledger.LastSeq(), Turn: w.ledger.LastTurn()})
			if !b.Compacted {
				continue
			}
			if b.Request == nil { // which may be for another model
				w.same("tokens after", b.TokensAfter, b.Budget.EstimatedInput)
			}
			w.demands[b.Generation] = o.View.Demands
			raw, err := w.render(o.View)
			if err != nil {
				w.t.Fatalf("render: %v", err)
			}
			if !w.broken {
				w.tokens(b, raw)
			}
			if !w.broken && b.Reason != events.ReasonRewind && b.Reason != events.ReasonManual && b.Reason != events.ReasonOverflow {
				w.stable(b)
			}
			w.restoredWithin(b)
			emitted(b, raw)
		}
	}
	w.answered(outs)
}

// answered checks that a compaction requested by hand is answered once, and that
// the ledger waits for the one that is not.
func (w *witness) answered(outs []compaction.Outcome) {
	for _, o := range outs {
		if c, ok := o.Body.(*events.Compacted); ok && c.Request != nil {
			if !w.requested[*c.Request] {
				w.t.Fatalf("%v has its second answer", c.Request)
			}
			delete(w.requested, *c.Request)
		}
	}
	open := map[events.Cause]bool{}
	if m := w.ledger.Manual(); m != nil {
		open[m.Cause] = true
	}
	w.same("requests without an answer", open, w.requested)
}

// returns checks that a rewind gives the bytes its generation had, for a provider of the same
// rules, except in the last message, which turns taken since may have joined.
func (w *witness) returns(c *events.Compacted, raw []codec.Raw) {
	if !c.Budget.WithinBudget && c.Reason != events.ReasonRewind && c.Code != events.CodeBudgetExceeded {
		w.g.Fatalf("%s: %d of %d with code %q", c.Reason, c.Budget.EstimatedInput, c.Budget.AvailableInput, c.Code)
	}
	w.emitted[c.Generation] = raw
	if c.RewoundTo == nil || !cmp.Equal(w.demands[*c.RewoundTo], w.demands[c.Generation]) {
		return
	}
	old := w.emitted[*c.RewoundTo]
	for i := range max(0, len(old)-1) {
		if i >= len(raw) || !bytes.Equal(old[i], raw[i]) {
			w.t.Fatalf("generation %d was\n%sand is\n%s", *c.RewoundTo, lines(old), lines(raw))
		}
	}
}

// original checks that a history which its provider takes can be had as it was
// published, whatever was done to it.
func (w *witness) original() {
	raw, err := w.render(w.ledger.ViewAt(0))
	if err != nil {
		w.t.Fatal(err)
	}
	var want []codec.Raw
	for _, m := range w.sent() {
		if m.Raw != nil { // else a summary
			want = append(want, m.Raw)
		}
	}
	if !slices.EqualFunc(want, raw, func(a, b codec.Raw) bool { return bytes.Equal(a, b) }) {
		w.t.Fatalf("published were\n%sand kept\n%s", lines(want), lines(raw))
	}
}

// partition checks that every entry is in view or replaced by one.
func (w *witness) partition() {
	view := w.ledger.Visible()
	for _, e := range w.ledger.Entries() {
		places := 0
		for i := range view {
			v, at := &view[i], e.Position()
			switch replaces := v.Kind == measure.KindTruncation || v.Kind == measure.KindSummary; {
			case v.Kind == measure.KindRestored: // a copy
			case replaces && v.Position().Compare(at) <= 0 && at.Compare(v.End()) <= 0, !replaces && v.Position() == at:
				places++
			}
		}
		kept := places == 2 && slices.ContainsFunc(view, func(v measure.Entry) bool { return v.Position() == e.Position() && v.Kind < measure.KindTruncation })
		if places != 1 && !kept {
			w.t.Fatalf("%v is in %d places of\n%+v", e.Position(), places, view)
		}
	}
}

// job checks that a job names the turns of its range, leaves a message, and parts no
// call from its result.
func (w *witness) job(j *events.Job) {
	if got := int64(len(j.Seqs)); got != j.To.Turn-j.Turn+1 {
		w.t.Fatalf("%d turns for %d to %d", got, j.Turn, j.To.Turn)
	}
	for i, seq := range j.Seqs {
		w.same("sequence of a turn", w.ledger.TurnSeq(j.Turn+int64(i)), seq)
	}
	if j.Previous != 0 && (j.PreviousTo.Turn != j.Turn || j.PreviousTo.Compare(j.To) >= 0 || len(w.texts[measure.Seq(j.Previous)]) != 1) {
		w.t.Fatalf("previous summary at %d to %v of %+v", j.Previous, j.PreviousTo, j)
	}
	left, inside := 0, map[dialect.Key]bool{}
	for _, e := range w.ledger.Entries() {
		in := e.Position().Compare(j.From) >= 0 && e.Position().Compare(j.To) <= 0
		if e.Flags&measure.FlagFirst != 0 && e.Position().Compare(j.To) > 0 {
			left++
		}
		switch {
		case e.Kind == measure.KindCall:
			inside[e.Call] = in
		case e.Kind == measure.KindResult && w.wholeJobs && inside[e.Call] != in:
			w.t.Fatalf("%v to %v parts the result at %v from its call", j.From, j.To, e.Position())
		}
	}
	if left == 0 {
		w.t.Fatalf("%v to %v leaves nothing", j.From, j.To)
	}
}

// decide decides twice: the ledger stays as it was, and so does the answer.
func (w *witness) decide(t compaction.Input) ([]compaction.Outcome, *compaction.Next) {
	compaction.Apply(w.ledger, nil, nil, w.config) // the cache of sums fits the config from here on
	before := w.ledger.Dump()
	outs, _ := compaction.Decide(w.ledger, t, w.config)
	again, next := compaction.Decide(w.ledger, t, w.config)
	sameLedger(w.t, before, w.ledger.Dump())
	w.same("number of outcomes", len(outs), len(again))
	for i := range outs {
		w.same("outcome", outs[i].Body, again[i].Body)
		if a, b := outs[i].View, again[i].View; (a == nil) != (b == nil) || a != nil && !slices.Equal(a.Entries, b.Entries) {
			w.t.Fatal("the same decision has two views")
		}
	}
	return outs, next
}

// applyRecorded brings the twin up to date with outcomes that were written and
// read back, at times after a restart.
func (w *witness) applyRecorded(again func() compaction.Input, outs []compaction.Outcome) {
	main := w.ledger
	w.ledger = w.restored
	in := again()
	w.ledger = main
	var recorded []compaction.Outcome
	for _, o := range outs {
		data, err := codec.Marshal(o.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		body, err := events.DecodeOutcome(o.Kind, data)
		if err != nil {
			w.t.Fatal(err)
		}
		recorded = append(recorded, compaction.Outcome{Kind: o.Kind, Body: body})
	}
	if w.g.odds(30, "restart") {
		w.restored = w.restart(w.restored)
	}
	compaction.Apply(w.restored, in, recorded, w.config)
	sameLedger(w.t, w.ledger.Dump(), w.restored.Dump())
}

// restart stores what changed of a ledger and makes one of all that is stored.
func (w *witness) restart(l *compaction.Ledger) *compaction.Ledger {
	changed, err := stored.Rows(l)
	if err != nil {
		w.t.Fatal(err)
	}
	l.Stored()
	for _, r := range changed {
		w.rows[r.Name] = r.Data
	}
	var all []compaction.Row
	for name, data := range w.rows {
		all = append(all, compaction.Row{Name: name, Data: data})
	}
	restored, err := stored.ReadLedger(l.Address, all)
	if err != nil {
		w.t.Fatal(err)
	}
	return restored
}

func (w *witness) same(what string, want, got any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("%s: %s", what, diff)
	}
}

func sameLedger(t fataler, want, got compaction.Dump) {
	t.Helper()
	if !want.Equal(got) {
		t.Fatalf("ledgers differ: %s", cmp.Diff(want.String(), got.String()))
	}
}

// tokens measures what was emitted: it is not larger than planned, and smaller than
// before, unless a summary gives back what was truncated.
func (w *witness) tokens(c *events.Compacted, raw []codec.Raw) {
	gives := c.Reason == events.ReasonBackground && slices.Contains(c.StagesUsed, events.StageSummarize) && !c.Budget.ShouldCompact
	if c.TokensAfter >= c.TokensBefore && !gives && c.RewoundTo == nil {
		w.t.Fatalf("%d -> %d tokens", c.TokensBefore, c.TokensAfter)
	}
	r := w.ledger.Rate()
	planned := measure.Tokens(c.Budget.Breakdown.History) - r.PerConversation + measure.Tokens(w.apart())*r.PerMessage
	for _, m := range raw { // lines that the provider demands are not planned
		if bytes.Contains(m, []byte(measure.BridgeText)) || bytes.Contains(m, []byte(measure.ApartText)) || bytes.Contains(m, []byte(measure.CloseText)) {
			planned += tokensOf(w.t, w.ledger.Format(), r, []codec.Raw{m})
		}
	}
	if got := tokensOf(w.t, w.ledger.Format(), r, raw); got > planned {
		w.t.Fatalf("planned %d tokens, rendered %d", planned, got)
	}
}

// apart counts the messages in view that are rendered as two, where no message may have
// results and anything else: they are estimated as one, as they were published.
func (w *witness) apart() (n int) {
	if !w.ledger.Format().Dialect().Apart {
		return 0
	}
	type message struct{ results, other bool }
	seen := map[events.Position]message{}
	for _, e := range w.ledger.Visible() {
		if e.Kind >= measure.KindTruncation || e.Flags.Has(measure.FlagEmpty) {
			continue
		}
		at := measure.MessageOf(e.Position())
		m := seen[at]
		m.results, m.other = m.results || e.Kind == measure.KindResult, m.other || e.Kind != measure.KindResult
		seen[at] = m
	}
	for _, m := range seen {
		if m.results && m.other {
			n++
		}
	}
	return n
}

func tokensOf(t fataler, f events.Format, r measure.Rate, raw []codec.Raw) measure.Tokens {
	msgs, err := f.ReadAll(raw)
	if err != nil {
		t.Fatalf("read back: %v", err)
	}
	var sum measure.Tokens
	for _, m := range msgs {
		for _, e := range measure.Measure(m, measure.Entry{}) {
			sum += r.Entry(&e)
		}
	}
	return sum
}

// restoredWithin checks what came back (B16): what is not in view, no more files than the
// policy allows, within the target, or below the trigger where there are skills.
func (w *witness) restoredWithin(c *events.Compacted) {
	files, most, inView, skills := int64(0), c.TargetTokens, map[events.Position]bool{}, false
	for _, e := range w.ledger.Visible() {
		if e.Kind == measure.KindResult || e.Kind == measure.KindWords {
			inView[e.Position()] = true
		}
	}
	for _, e := range w.ledger.Visible() {
		if e.Kind == measure.KindRestored {
			if e.Flags&measure.FlagRead != 0 {
				files++
			} else {
				most = max(most, c.Budget.TriggerTokens-1)
				skills = true
			}
			if inView[e.Position()] {
				w.t.Fatalf("%v is in view twice", e.Position())
			}
		}
	}
	if limit := w.ledger.Policy().Restore.Files; files > limit {
		w.t.Fatalf("%d files are restored, at most %d may be", files, limit)
	}
	if skills && c.Request != nil {
		return // the budget may be that of another model than the call's
	}
	back := func(e events.Edit) bool { return e.Op == events.OpRestore && e.Units > 0 }
	if slices.ContainsFunc(c.Edits, back) && (c.TokensAfter > most || c.TokensAfter > c.TokensBefore) {
		w.t.Fatalf("restored to %d of %d tokens, from %d", c.TokensAfter, most, c.TokensBefore)
	}
}

// stable plans again at once: under the target nothing runs, and above it only another cut
// of a fraction may. A deduplication makes protected results smaller, so that prune may reach
// more of the old ones.
func (w *witness) stable(c *events.Compacted) {
	policy := w.ledger.Policy()
	if c.Reason == events.ReasonEveryTurn {
		w.clearedAll(&policy)
		return
	}
	if c.Reason == events.ReasonArrival {
		w.cutAll(&policy)
		return
	}
	target := w.ledger.AvailableFor(measure.Tokens(c.TargetTokens))
	hidden := func(e events.Edit) bool { return e.Op == events.OpTruncate || e.Op == events.OpCondense } // whichever stage did it
	reduced := slices.Contains(c.StagesUsed, events.StageTruncate) || slices.ContainsFunc(c.Edits, hidden)
	if history := measure.Tokens(c.Budget.Breakdown.History) - w.ledger.Rate().PerConversation; reduced && history > target {
		return
	}
	hides := !policy.Summarize.Enabled && c.Reason != events.ReasonCost // which is below the trigger: it hides nothing
	policy.Truncate.Enabled = policy.Truncate.Enabled && hides
	policy.Prune.Enabled = policy.Prune.Enabled && !slices.Contains(c.StagesUsed, events.StageDeduplicate)
	p := w.ledger.Replan(&policy, measure.Tokens(c.TargetTokens))
	if p.After > target && slices.Equal(p.Used, []events.Stage{events.StagePrune}) {
		return // results stay for a share of the target, which moves with what has left
	}
	if len(p.Used) > 0 || p.After != p.Before {
		w.t.Fatalf("a second plan uses %v: %d -> %d, target %d; after %s %v", p.Used, p.Before, p.After, target, c.Reason, c.Stages)
	}
}

// clearedAll clears again what is cleared at every turn: there is no more.
func (w *witness) clearedAll(policy *policy.Policy) {
	p := historyOf(w.ledger.Visible(), w.ledger.Format(), w.ledger.Rate()).Plan(0, stage.Step{Name: events.StagePrune, Run: func(d *stage.Draft) { d.ClearOld(&policy.Prune.Micro) }})
	if len(p.Used) > 0 {
		w.t.Fatalf("%d more results are cleared", p.Stages[0].Edits)
	}
}

// cutAll cuts again what is cut on arrival: there is no more.
func (w *witness) cutAll(policy *policy.Policy) {
	p := historyOf(w.ledger.Visible(), w.ledger.Format(), w.ledger.Rate()).Plan(0, stage.Step{Name: events.StagePrune, Run: func(d *stage.Draft) { d.Limit(&policy.ToolOutput, true) }})
	if len(p.Used) > 0 {
		w.t.Fatalf("%d more results are cut", p.Stages[0].Edits)
	}
}

func (w *witness) valid(raw []codec.Raw) {
	view := w.ledger.View()
	w.validFor(view.Demands, raw)
}

// emittedValid checks what was emitted by the demands of the provider that it was made for.
func (w *witness) emittedValid(c *events.Compacted, raw []codec.Raw) {
	w.validFor(w.demands[c.Generation], raw)
}

func (w *witness) validFor(demands traits.Demands, raw []codec.Raw) {
	if v := validate.Check(validate.Call{Format: string(w.ledger.Format()), Demands: demands, Messages: raw}); len(v) > 0 {
		w.t.Fatalf("%v in\n%s", v, lines(raw))
	}
}

// noRepairs checks that pairs are whole: nothing had to stand in for a call or a
// result.
func (w *witness) noRepairs(raw []codec.Raw) {
	for _, m := range raw {
		if bytes.Contains(m, []byte(measure.AnswerText)) || bytes.Contains(m, []byte("[Tool call for")) {
			w.t.Fatalf("a pair was split:\n%s", lines(raw))
		}
	}
}

func (w *witness) keepsFirstUser(raw []codec.Raw) {
	if slices.ContainsFunc(w.ledger.Visible(), func(e measure.Entry) bool { return e.Kind == measure.KindSummary }) {
		return // it contains the words of the user
	}
	cut := func(e measure.Entry) bool { return e.Role == measure.RoleUser && e.Op.Trims() }
	for _, m := range w.sent() {
		if m.Role == dialect.RoleUser {
			if i := slices.IndexFunc(w.ledger.Visible(), func(e measure.Entry) bool { return e.Role == measure.RoleUser }); cut(w.ledger.Visible()[i]) {
				return // its head is there: TestTrim
			}
			if !slices.ContainsFunc(raw, func(r codec.Raw) bool {
				return bytes.Equal(r, m.Raw) || holdsParts(r, m, measure.TruncateText, measure.MediaText)
			}) {
				w.t.Fatalf("no %s in\n%s", m.Raw, lines(raw))
			}
			return
		}
	}
}

// holdsParts reports whether a message has the blocks of another, its cleared images aside, and
// one of some texts: it is joined with the truncation notice where nothing of the assistant is
// between them.
func holdsParts(r codec.Raw, m dialect.Message, any ...string) bool {
	for _, p := range m.Parts {
		if p.Kind == dialect.PartImage && bytes.Contains(r, []byte(measure.MediaText)) {
			continue
		}
		if p.Raw == nil {
			quoted := codec.Quote(p.Text)
			p.Raw = quoted[1 : len(quoted)-1] // neurolink joins texts
		}
		if !bytes.Contains(r, p.Raw) {
			return false
		}
	}
	return slices.ContainsFunc(any, func(text string) bool { return bytes.Contains(r, []byte(text)) })
}

// keepsOpenCalls checks that the messages with open calls are there, and that
// nothing but results follows.
func (w *witness) keepsOpenCalls(raw []codec.Raw) {
	open := openMessages(w.sent())
	if len(open) == 0 {
		return
	}
	at := slices.IndexFunc(raw, func(r codec.Raw) bool { return bytes.Equal(uncited(r), uncited(open[0])) })
	if at < 0 {
		w.t.Fatalf("no %s in\n%s", open[0], lines(raw))
	}
	msgs, _ := w.ledger.Format().ReadAll(raw[at:])
	for _, m := range msgs {
		for _, p := range m.Parts {
			if m.Role != dialect.RoleAssistant && p.Kind != dialect.PartResult {
				w.t.Fatalf("open calls are not last:\n%s", lines(raw))
			}
		}
	}
}

// uncited is a message without the citations that the generator gives one.
func uncited(raw codec.Raw) codec.Raw {
	return bytes.ReplaceAll(raw, []byte(`"citations":[{"encrypted_index":"aW5kZXg=","type":"web_search_result_location"}],`), nil)
}

// keepsServed checks that of calls which the provider carries out, and their results, both or none
// are there, as they came.
func (w *witness) keepsServed(raw []codec.Raw) {
	came, open := map[string]bool{}, map[dialect.Key]int{}
	for _, m := range w.sent() {
		for _, p := range m.Parts {
			came[string(p.Raw)] = true
		}
	}
	msgs, _ := w.ledger.Format().ReadAll(raw)
	for i, m := range msgs {
		for _, p := range m.Parts {
			switch p.Hosted.Kind {
			case dialect.HostedCall:
				open[p.Hosted.ID]++
			case dialect.HostedResult:
				open[p.Hosted.ID]--
			default:
				continue
			}
			if p.Kind == dialect.PartOther && (!came[string(p.Raw)] || open[p.Hosted.ID] < 0) {
				w.t.Fatalf("%s did not come, or without its call, in\n%s", p.Raw, lines(raw))
			}
		}
		for id, n := range open {
			if n > 0 && (i < len(msgs)-2 || w.g.format != events.Anthropic) && !slices.ContainsFunc(msgs[min(i+1, len(msgs)):], func(m dialect.Message) bool { return hasServed(m, id) }) {
				w.t.Fatalf("a call is without its result in\n%s", lines(raw))
			}
		}
	}
}

func hasServed(m dialect.Message, id dialect.Key) bool {
	return slices.ContainsFunc(m.Parts, func(p dialect.Part) bool { return p.Hosted.Kind == dialect.HostedResult && p.Hosted.ID == id })
}

// openMessages are the last messages that call tools whose results are missing.
func openMessages(msgs []dialect.Message) []codec.Raw {
	answered := map[string]bool{}
	for i, m := range slices.Backward(msgs) {
		for _, p := range m.Parts {
			answered[p.CallID] = answered[p.CallID] || p.Kind == dialect.PartResult
		}
		if m.Role == dialect.RoleUser && !slices.ContainsFunc(m.Parts, func(p dialect.Part) bool { return p.Kind == dialect.PartResult }) {
			return nil
		}
		for _, p := range m.Parts {
			if p.Kind == dialect.PartCall && p.CallID != "" && !answered[p.CallID] {
				return []codec.Raw{msgs[i].Raw}
			}
		}
	}
	return nil
}

// sent lists the messages of all turns in order.
func (w *witness) sent() []dialect.Message {
	var out []dialect.Message
	for seq := measure.Seq(1); seq <= w.seq; seq++ {
		out = append(out, w.texts[seq]...)
	}
	return out
}

func lines(raw []codec.Raw) string {
	var b strings.Builder
	for i, r := range raw {
		fmt.Fprintf(&b, "%d %.200s\n", i, r)
	}
	return b.String()
}

// A list of entries behaves as a slice, and so does its copy, whichever of the
// two grows or is cut, as long as only one of them grows.
func TestChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list compaction.Chunks
		var model []measure.Entry
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				for range rapid.IntRange(1, 50).Draw(t, "entries") {
					e := measure.Entry{Turn: uint32(len(model) + 1), Text: rapid.Uint32().Draw(t, "text")}
					list.Add(e)
					model = append(model, e)
				}
			case 2:
				n := rapid.IntRange(0, len(model)).Draw(t, "cut")
				list.Cut(n)
				model = model[:n:n]
			case 3: // a fork takes a turn, and is erased
				fork := list
				fork.Cut(rapid.IntRange(0, len(model)).Draw(t, "fork cut"))
				for range rapid.IntRange(0, 50).Draw(t, "fork entries") {
					fork.Add(measure.Entry{Turn: 1 << 30})
				}
			case 4:
				turn := rapid.IntRange(0, len(model)+1).Draw(t, "search")
				if got, want := list.Search(int64(turn)), max(0, turn-1); got != min(want, len(model)) {
					t.Fatalf("turn %d found at %d of %d", turn, got, len(model))
				}
			}
			if got := list.List(); !slices.Equal(got, model) {
				t.Fatal(cmp.Diff(model, got))
			}
		}
	})
}
