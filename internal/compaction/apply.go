package compaction

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
)

// Outcome is the answer of a worker to an event: the payload, and the view to render into it.
type Outcome struct {
	Kind events.Kind
	// Body is a *events.Compacted without messages, a *events.BudgetChanged, a
	// *events.Rejected, a *events.Forgotten or a *events.Job.
	Body any
	// View is the effective history that a compaction emits; nil for any other
	// outcome.
	View *render.View
}

// Apply updates a ledger by an event and its recorded outcomes, which another version may have decided years
// ago. It decides nothing. A decision of now is installed instead; see [Decide].
func Apply(l *Ledger, e Input, outs []Outcome, c *Config) {
	l.use(c)
	var now int64
	switch e := e.(type) {
	case *Turn:
		if now = e.Time; !slices.ContainsFunc(outs, rejects) {
			v, _ := l.admit(e)
			l.take(e, v)
		}
	case *Result:
		now = e.Time
		l.receive(e)
	case *Request:
		now = e.Time
		if !slices.ContainsFunc(outs, rejects) {
			l.applyRequest(e)
		}
	}
	l.carryOut(outs, now)
}

// carryOut applies outcomes to a session.
func (l *Ledger) carryOut(outs []Outcome, now int64) {
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Compacted:
			l.applyCompacted(b, now)
		case *events.BudgetChanged:
			l.level = b.Level
		case *events.Job:
			l.addJob(b, now)
		}
	}
}

// rejects reports whether an outcome means that its event was not taken.
func rejects(o Outcome) bool {
	r, ok := o.Body.(*events.Rejected)
	return ok && events.Codes[r.Code].Rejects
}

// take adds an admitted turn: at its place or among the parked ones; a turn that is there already is ignored.
// Parked turns follow as soon as they can.
func (l *Ledger) take(t *Turn, v verdict) {
	l.notes, l.lastTurnAt, l.idleHandled = nil, t.Time, false
	if v == accept || v == park {
		l.date(t.Seq, t.Time)
	}
	switch v {
	case ignore, reject: // reject: it was taken when the log still had the turns before it
		return
	case park:
		l.parked = append(l.parked, t.clone()) // a worker uses the memory of a turn again
		return
	}
	generation := t.generation
	if t.from > 0 {
		if at := l.entries.search(events.Position{Turn: t.from}); t.from > 1 && at < l.compactedTo {
			generation = unknownGeneration // it was made under a part of a compacted history
		}
		l.retract(t.from)
	}
	l.append(t, generation)
	l.noteAll(t, 0)
	// A turn parked before the session had a dialect may have been read in another.
	l.parked = slices.DeleteFunc(l.parked, func(p *Turn) bool { return p.format != l.format })
	for {
		i := slices.IndexFunc(l.parked, func(p *Turn) bool { return p.number == l.LastTurn()+1 })
		if i < 0 {
			return
		}
		p := l.parked[i]
		l.parked = slices.Delete(l.parked, i, i+1)
		l.append(p, p.generation)
		l.noteAll(p, l.LastTurn())
	}
}

// retract removes the turns from number k on, parked ones included.
func (l *Ledger) retract(k int64) {
	l.parked = slices.DeleteFunc(l.parked, func(p *Turn) bool { return p.number >= k })
	if k > l.LastTurn() {
		return
	}
	before := l.cache.visible
	l.noteRetracted(k)
	l.prompts.retract(k)
	l.turns = slices.Clip(l.turns[:k-1]) // the next turn must not overwrite memory that a fork shares
	l.entries.cut(l.entries.search(events.Position{Turn: k}))
	l.cutHidden()
	if l.job != nil && l.job.To.Turn >= k {
		l.job = nil
	}
	if l.prepared != nil && l.prepared.To.Turn >= k {
		l.prepared = nil
	}
	l.clearNames()
	if first := slices.IndexFunc(l.edits, l.retracted); first >= 0 {
		l.edits = slices.DeleteFunc(slices.Clone(l.edits), l.retracted) // a fork shares them
		l.changed.edit = min(l.changed.edit, first)
	}
	l.cutGenerations(k)
	l.changed.entry, l.changed.turn = min(l.changed.entry, l.entries.n), min(l.changed.turn, len(l.turns))
	l.recount()
	l.usage.dropAnchor()
	after := l.cache.visible
	l.cache.visible = before
	l.resize(after, true)
	if k == 1 { // nothing counted is left
		l.usage.clear()
	}
}

// cutHidden cuts the hidden spans to the entries that are left.
func (l *Ledger) cutHidden() {
	l.hidden = slices.DeleteFunc(slices.Clone(l.hidden), func(s span) bool { // a fork shares them
		return s.From >= l.entries.n || s.Seq != 0 && s.To > l.entries.n // a summary of retracted turns
	})
	for i := range l.hidden {
		l.hidden[i].To = min(l.hidden[i].To, l.entries.n)
	}
}

// cutGenerations removes the effects of generations on turns from number k on.
func (l *Ledger) cutGenerations(k int64) {
	if l.compactedTo > l.entries.n { // the part of the saving that is left is unknown
		l.compactedTo, l.generations = l.entries.n, slices.Clone(l.generations)
		for i := range l.generations {
			l.generations[i].Saved = 0
		}
	}
	if slices.ContainsFunc(l.generations, func(g generation) bool { return g.Through >= k }) {
		l.generations = slices.Clone(l.generations) // a fork shares them
		for i := range l.generations {
			if l.generations[i].Through >= k {
				l.generations[i].Through = 0
			}
		}
	}
}

// retracted reports whether the entry of an edit was retracted.
func (l *Ledger) retracted(m editRecord) bool { return int(m.entry) >= l.entries.n }

// append adds a turn that was made under a generation.
func (l *Ledger) append(t *Turn, generation int64) {
	other := t.format != l.format || t.model != nil && *t.model != l.model
	bound := other && l.bindsThinking()
	l.useNames(t.names)
	l.addTurn(t.identity, t.Seq, t.messages)
	if l.LastTurn() == 1 && t.fork != nil { // one that replaces it stays a branch
		l.forkedAt = &Forked{*t.fork, t.Seq}
	}
	before := l.cache.visible
	l.prompts.add(l.LastTurn(), t, generation)
	based := t.expect != nil && t.usage != nil // a turn that names its base has the usage of a call with that base
	billed := based && l.counted(t)
	if l.takeSettings(t) {
		before = l.cache.visible
	}
	if other && !bound && l.bindsThinking() {
		l.prompts.Since = t.since(l.LastTurn())
	}
	if t.usage != nil {
		l.overflows = 0
	}
	if t.Time-l.growth.last > l.cache.policy.Cache.Seconds*1000 { // the provider has dropped its cache
		l.carried = 0
	}
	from, counted := l.addEntries(t, t.usage != nil && !based)
	billed = billed || counted
	if t.from > 0 { // a resync, or a history that grew elsewhere
		before = l.cache.visible
	}
	hidden := l.answers(t, from, billed)
	l.growth.add(t.Time, l.cache.visible-before+hidden)
	l.floor()
	l.turns[len(l.turns)-1].input = bounded32(int64(l.estimated()))
}

// takeSettings takes the settings of a turn, and reports whether they measured the ledger again.
func (l *Ledger) takeSettings(t *Turn) bool {
	l.format = t.format
	if t.system != nil {
		l.system, l.systemSeq = *t.system, t.Seq
	}
	if t.tools != nil {
		l.tools, l.toolSeq = *t.tools, t.Seq
	}
	other := t.override != nil && !bytes.Equal(t.override, l.override)
	if !other && (t.model == nil || *t.model == l.model) {
		return false
	}
	if other {
		l.override = t.override
	}
	l.change(t.model)
	return true
}

// addEntries adds the entries of a turn. With usage it counts the input before the answer; from is then the
// position of the answer, and counted the result.
func (l *Ledger) addEntries(t *Turn, usage bool) (from int, counted bool) {
	answer := t.answer()
	for i, e := range t.entries {
		if i == answer && usage {
			from, counted = i, l.counted(t)
		}
		if i == answer {
			l.called(t.usage)
		}
		e.Turn = uint32(len(l.turns))
		if e.Kind == measure.KindCall {
			l.regret.Called(&e)
		}
		l.link(&e)
		l.entries.add(e)
		l.cache.visible += l.cache.rate.Entry(&e)
		l.cache.bytes += e.OwnBytes()
		l.cache.entries++
		if e.Flags.Has(measure.FlagFirst) {
			l.cache.heads++
		}
		l.cache.media = l.cache.media.Add(e.Count())
	}
	return from, counted
}

// counted takes the usage of a turn, which is of the input as it is now. It reports whether the usage's
// output belongs to an answer to the present view.
func (l *Ledger) counted(t *Turn) bool {
	if !l.isFalse(t.usage) {
		l.spend(t.usage)
	}
	if t.generation <= l.Generation() { // an agent cannot have applied what was not published
		l.accept(t.usage)
	}
	return l.anchor(t.usage, t.generation, l.prompt().Total()) && t.generation == l.Generation()
}

// maxNoted bounds how many problems of its turns are reported to an agent.
const maxNoted = 8

// noteAll notes the problems of a turn that is taken. The number is 0 for the turn of the event.
func (l *Ledger) noteAll(t *Turn, number int64) {
	if t.usageProblem != "" {
		l.note(events.Note{Code: events.CodeUsageUnknown, Turn: number, Message: t.usageProblem + "; the turn counts without it", Fields: []string{"usage"}})
	}
	if t.model != nil && !l.cache.noted {
		l.cache.noted = true
		if text := l.cache.config.unknownModel(&l.model, l.cache.policy); text != "" {
			l.note(events.Note{Code: events.CodeUnknownModel, Turn: number, Message: text, Fields: []string{"model"}})
		}
	}
}

// note adds a note, once for each text: agents repeat the same problem with every turn.
func (l *Ledger) note(n events.Note) {
	h := fnv.New32a()
	_, _ = io.WriteString(h, n.Message) // never fails
	if len(l.noted) == maxNoted || slices.Contains(l.noted, h.Sum32()) {
		return
	}
	l.noted = append(slices.Clip(l.noted), h.Sum32()) // a fork shares them
	n.Hint = events.Codes[n.Code].Hint
	l.notes = append(l.notes, n)
}

// noteWindow notes that a call took more than the known window of the model.
func (l *Ledger) noteWindow() {
	n := events.NoteOf(events.CodeWindowRaised, "model.context_window")
	n.Message += fmt.Sprintf(" It is %d tokens now.", l.cache.window)
	l.notes = append(slices.Clip(l.notes), n)
}

// change takes another model, nil for the same, and its effects.
func (l *Ledger) change(m *events.Model) {
	if m != nil && *m != l.model {
		l.model, l.limits, l.overflows = *m, limits{}, 0
	}
	l.attempted, l.whileOpen, l.blockedAt, l.usage = 0, false, 0, calibration{}
	l.measure()
	l.floor()
}

// answer returns the position of the turn's last answer, to which the usage belongs, or −1. Some dialects
// have an answer as several messages.
func (t *Turn) answer() int {
	at := len(t.entries) - 1
	for at >= 0 && t.entries[at].Role != measure.RoleAssistant {
		at--
	}
	for at > 0 && t.entries[at-1].Role == measure.RoleAssistant {
		at--
	}
	return at
}

// applyCompacted carries out the edits of a compaction, or a rewind.
func (l *Ledger) applyCompacted(b *events.Compacted, now int64) {
	l.level = b.Budget.Level
	closed := l.whileOpen && !l.awaitsResults()
	if l.attempted, l.whileOpen = 0, false; b.Budget.ShouldCompact {
		l.attempted, l.whileOpen = measure.Tokens(b.Budget.EstimatedInput), l.awaitsResults()
	}
	switch {
	case l.level != events.LevelBlocking:
		l.blockedAt = 0
	case closed, l.blockedAt == 0:
		l.blockedAt = b.Through.Turn
	}
	switch {
	case !b.Budget.ShouldCompact:
		l.breaker.Thrashes = 0
	case b.RewoundTo == nil && b.Request == nil:
		l.breaker.Thrashes++
		l.breaker.Last = now
	}
	if b.Request != nil && l.job != nil && l.job.answers(b.Request) {
		l.job = nil
	}
	if !b.Compacted {
		return
	}
	if c := b.Cache; c != nil {
		l.cost.Lost += c.Lost
		l.cost.Saved += c.Saved
	}
	switch {
	case b.Request != nil || !slices.Contains(b.StagesUsed, events.StageSummarize):
	case b.Reason == events.ReasonBackground:
		l.made.Late++
	default:
		l.made.Ready++
	}
	was := measure.ResultsOf(l.visible())
	l.compactedTo = l.entries.n
	for l.Generation() < b.Generation-1 { // compactions of turns that have left the log
		l.generations = append(l.generations, generation{From: l.Generation()})
	}
	g := generation{Before: measure.Tokens(b.TokensBefore), Saved: measure.Tokens(b.TokensSaved), From: l.Generation(), Through: b.Through.Turn, Seq: measure.Seq(b.CausedBy.Seq), Reason: b.Reason}
	if b.RewoundTo != nil {
		g.From = min(*b.RewoundTo, l.Generation())
	}
	l.generations = append(l.generations, g)
	if b.RewoundTo != nil {
		l.rewind()
	}
	for _, e := range b.Edits {
		l.edit(e, b.Generation)
	}
	if l.prepared != nil && b.RewoundTo == nil {
		unused := *l.prepared // a fork shares it
		unused.Unused++
		l.prepared = &unused
	}
	l.regret.Compacted(was, measure.ResultsOf(l.visible()))
	before := l.cache.visible
	l.recount()
	after := l.cache.visible
	l.cache.visible = before
	l.recorrect(before-after, measure.Tokens(b.Budget.EstimatedInput))
	l.cache.visible = after
}

// awaitsResults reports whether the newest calls have fewer results than calls.
func (l *Ledger) awaitsResults() bool {
	balance, calls := 0, false // results without a call, from the end on
	for i := l.entries.n - 1; i >= 0; i-- {
		switch l.entries.at(i).Kind {
		case measure.KindCall:
			if balance, calls = balance-1, true; balance < 0 {
				return true
			}
		case measure.KindResult:
			if calls && balance <= 0 {
				return false
			}
			balance++
		default:
			if calls || l.entries.at(i).Role != measure.RoleAssistant {
				return false
			}
		}
	}
	return false
}

// endKeeps ends the keeps of the same generation in a range that it hides once more.
func (l *Ledger) endKeeps(from, to int, gen int64) {
	n := len(l.edits)
	for n > 0 && l.edits[n-1].gen == uint32(gen) {
		n--
	}
	ended := func(m editRecord) bool {
		return m.op == measure.OpKeep && from <= int(m.entry) && int(m.entry) < to
	}
	if slices.ContainsFunc(l.edits[n:], ended) { // a fork may share the list
		l.edits = append(l.edits[:n:n], slices.DeleteFunc(slices.Clone(l.edits[n:]), ended)...)
	}
}

func (l *Ledger) edit(e events.Edit, gen int64) {
	at := l.entries.search(e.Position)
	if at == l.entries.n {
		return // retracted since
	}
	switch e.Op {
	case events.OpClear, events.OpClearOld, events.OpDeduplicate, events.OpTrim:
		x := l.entries.at(at)
		if x.Compare(e.Position) != 0 {
			return
		}
		x.Set(&e)
		l.edits = append(l.edits, editRecord{entry: uint32(at), gen: uint32(gen), op: x.Op, units: x.Ceiling, lines: x.Lines})
		l.changed.entry = min(l.changed.entry, at)
	case events.OpTruncate, events.OpCondense:
		after := *e.To
		after.Index, after.Part = after.Index+1, 0
		to := l.entries.search(after)
		if to > at {
			l.hidden = append(l.hidden, span{From: at, To: to, Gen: gen, Seq: measure.Seq(e.Seq), Units: e.Units, Spares: measure.SparesOf(e.Spare)})
			l.endKeeps(at, to, gen)
		}
		if p := l.prepared; p != nil && (p.Seq == measure.Seq(e.Seq) || e.Op == events.OpCondense && e.To.Compare(p.To) >= 0) {
			l.prepared = nil
		}
	case events.OpKeep:
		if l.entries.at(at).Compare(e.Position) == 0 {
			l.edits = append(l.edits, editRecord{entry: uint32(at), gen: uint32(gen), op: measure.OpKeep})
		}
	case events.OpRestore:
		if x := l.entries.at(at); (x.Kind == measure.KindResult || x.Kind == measure.KindWords) && x.Compare(e.Position) == 0 {
			l.edits = append(l.edits, editRecord{entry: uint32(at), gen: uint32(gen), op: measure.OpRestore, units: uint32(e.Units)})
		}
	}
}
