package compaction

import (
	"cmp"
	"math"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/models"
	"compactd/internal/events/traits"
)

// generation is the record of one compaction or rewind.
type generation struct {
	Before measure.Tokens `json:"before,omitzero"` // input at the decision
	Saved  measure.Tokens `json:"saved"`           // by it; negative for a rewind, 0 where it is unknown
	From   int64          `json:"from"`            // the generation whose view it changed: the one before, or the target of a rewind
	// Through is the last turn that it changed, 0 if that was retracted since.
	Through int64       `json:"through,omitzero"`
	Seq     measure.Seq `json:"seq,omitzero"` // of the event that caused it, 0 if unknown

	Reason events.Reason `json:"reason,omitzero"` // "" if unknown
}

// unknown reports whether turns that the generation made smaller were retracted, or have left the log: a
// count of a view before it does not hold for later views.
func (g generation) unknown() bool { return g.Saved == 0 }

// editRecord is an edit of one entry by one generation. Records are only added, so the view of any generation
// can be restored.
type editRecord struct {
	entry uint32 // its position in the ledger
	gen   uint32
	op    measure.Op
	units uint32 // ceiling of a cut or restored text; a restore without it takes one back
	lines uint16
}

// A session counts as overedited above editsPerEntry edits for each entry and editsAnyway more, of all
// generations.
const (
	editsPerEntry = 16
	editsAnyway   = 1000
)

// Overedited reports whether the session has far more edits than entries. They are published whole and kept,
// and only rewinds and compactions by hand in turns make so many.
func (l *Ledger) Overedited() bool { return len(l.edits) > editsPerEntry*l.entries.n+editsAnyway }

// shows reports whether a record brings a hidden entry into view, and is no edit of it.
func (m *editRecord) shows() bool { return m.op == measure.OpRestore || m.op == measure.OpKeep }

// on puts the edit in force on its entry.
func (m *editRecord) on(e *measure.Entry) { e.Op, e.Ceiling, e.Lines = m.op, m.units, m.lines }

// lineage marks the generations that shaped the view of gen: itself, the one it changed, and so on.
// Generations undone by a rewind are not marked.
func (l *Ledger) lineage(gen int64) []bool {
	in := make([]bool, len(l.generations)+1)
	for ; gen > 0; gen = l.generations[gen-1].From {
		in[gen] = true
	}
	return in
}

// rewind emits the view of an earlier generation, with every turn since.
func (d *decision) rewind(l *Ledger, r *events.Rewind) {
	var to int64
	ok := true
	if r.Generation != nil {
		to = *r.Generation
	} else {
		to, ok = l.undone(r.Steps)
	}
	if !ok || to > l.Generation() {
		d.reject(events.CodeUnknownGeneration, l)
		return
	}
	next := l.fork()
	next.job, next.prepared = nil, nil
	if l.origin(to) == l.origin(l.Generation()) { // the target is in view
		d.emitUnchanged(l, events.ReasonRewind, events.CodeNothingToDo)
		return
	}
	next.generations = append(next.generations, generation{From: to})
	h := l.history()
	view := next.visibleAt(next.Generation())
	h.View = func(out []measure.Entry) []measure.Entry { return append(out, view...) }
	plan := budgeted{Plan: h.Plan(0, next.folding(len(view))...), total: next.thresholds().Target}
	plan.Before = l.draft().Repaired()
	next.generations = next.generations[:l.Generation()]
	d.emitPlan(next, plan, events.ReasonRewind).RewoundTo = &to
	d.abort(l, next)
}

// undone returns the generation in view after undoing so many compactions of the present view; false if there
// are fewer.
func (l *Ledger) undone(steps int64) (int64, bool) {
	at := l.origin(l.Generation())
	for ; steps > 0; steps-- {
		if at == 0 {
			return 0, false
		}
		at = l.origin(l.generations[at-1].From)
	}
	return at, true
}

// origin returns the generation that made the view of gen: gen itself, or the target of a rewind.
func (l *Ledger) origin(gen int64) int64 {
	for gen > 0 && l.generations[gen-1].From != gen-1 {
		gen = l.generations[gen-1].From
	}
	return gen
}

// rewind restores the edits of a generation, as edits of the newest.
func (l *Ledger) rewind() {
	in := l.lineage(l.Generation())
	for _, m := range l.edits {
		none := editRecord{}
		none.on(l.entries.at(int(m.entry)))
		l.changed.entry = min(l.changed.entry, int(m.entry))
	}
	for _, m := range l.edits {
		if in[m.gen] && !m.shows() {
			m.on(l.entries.at(int(m.entry)))
		}
	}
	l.job, l.prepared = nil, nil
}

// visibleAt lists the entries in view at a generation, whose edits apply to turns taken since too.
func (l *Ledger) visibleAt(gen int64) []measure.Entry {
	in, edits := l.lineage(gen), map[events.Position]editRecord{}
	for _, m := range l.edits {
		if in[m.gen] && !m.shows() {
			edits[l.entries.at(int(m.entry)).Position()] = m
		}
	}
	out := l.view(nil, in)
	for i := range out {
		if e := &out[i]; e.Kind < measure.KindTruncation {
			m := edits[e.Position()]
			m.on(e)
		}
	}
	return out
}

// View returns the current effective history, repaired.
func (l *Ledger) View() *render.View { return l.ViewAt(l.Generation()) }

// Prompt returns the sequences of the turns with the system prompt and the tools, 0 for none.
func (l *Ledger) Prompt() (system, tools measure.Seq) { return l.systemSeq, l.toolSeq }

// ViewAt returns the history under a generation, with every turn taken since, repaired. The generation is at
// least 0, the history as published, and at most that of the ledger.
func (l *Ledger) ViewAt(generation int64) *render.View {
	return l.ViewThrough(generation, l.LastTurn())
}

// ViewThrough returns the history up to a turn under a generation, repaired.
func (l *Ledger) ViewThrough(generation, turn int64) *render.View {
	entries := slices.DeleteFunc(l.visibleAt(generation), func(e measure.Entry) bool { return e.End().Turn > turn })
	d := stage.NewDraft(entries, l.format, l.cache.rate)
	d.Repair()
	return l.viewOf(d.Entries(), generation)
}

// GenerationThrough is the last turn that a generation changed, 0 if unknown.
func (l *Ledger) GenerationThrough(generation int64) int64 {
	if generation < 1 || generation > l.Generation() {
		return 0
	}
	return l.generations[generation-1].Through
}

// GenerationShows is the last turn that appears changed under a generation: by the generation itself, or
// without its thinking since the turn was made under another one. It is 0 if the first is unknown.
func (l *Ledger) GenerationShows(generation int64) int64 {
	through := l.GenerationThrough(generation)
	if through == 0 || !l.bindsThinking() {
		return through
	}
	last := l.LastTurn()
	if generation < l.Generation() {
		next := l.generations[generation].Seq
		n, _ := slices.BinarySearch(l.TurnSeqs(), next+1)
		last = min(last, int64(n))
	}
	kept := l.prompts.under(generation, last)
	if n := len(kept); n > 0 && int64(kept[n-1].To) == last {
		last = int64(kept[n-1].From) - 1
	}
	return max(through, last)
}

// GenerationAt is the generation of the history after the decision about an event.
func (l *Ledger) GenerationAt(seq measure.Seq) int64 {
	n := len(l.generations)
	for n > 0 && l.generations[n-1].Seq > seq {
		n--
	}
	return int64(n)
}

// Settings are set by turns, and hold until another turn sets them.
type Settings struct {
	Model         events.Model
	Policy        codec.Raw
	System, Tools dialect.Key // of their JSON, 0 for none
}

// Settings returns the present settings.
func (l *Ledger) Settings() Settings {
	return Settings{l.model, l.override, l.prompts.System, l.prompts.Tools}
}

// viewOf is the view of entries under a generation, with the rendering options of the session.
func (l *Ledger) viewOf(entries []measure.Entry, generation int64) *render.View {
	demands := traits.DemandsOf(l.format, models.Provider(l.model.Provider), l.model.Name)
	through := cmp.Or(l.GenerationThrough(generation), math.MaxInt64) // 0: it is being made
	originals := render.ByPlace
	if l.cache.policy.NamesHashes() {
		originals = render.ByHash
	}
	return &render.View{
		Format: l.format, PlaceholderRole: l.cache.custom.PlaceholderRole, SystemInside: render.SystemInside(l.model.Name),
		Demands: demands, Marks: l.prompts.Marks.System + l.prompts.Marks.Tools, Renamed: stage.Rename(entries, l.format, &demands), Uncited: stage.Uncite(entries, through), Thinking: l.thinkingAt(generation, entries),
		Originals: originals, Entries: entries,
	}
}

// prompts has the facts that a model's thinking is bound to, beside the messages before it: the generation of
// each turn, and the turn from which system prompt and tools hold.
// See docs/adr/0026.
type prompts struct {
	Made   []made      `json:"made,omitzero"`   // in the order of turns, from 0 until the first
	System dialect.Key `json:"system,omitzero"` // of the prompt, 0 for none
	Tools  dialect.Key `json:"tools,omitzero"`
	Marks  marks       `json:"marks,omitzero"`
	Since  int64       `json:"since,omitzero"` // the turn that set one of them last, or a model that binds its thinking
	// Refused is the last turn before the provider refused thinking that is bound to another history: no
	// thinking up to it is sent again, whatever the model's name.
	Refused int64 `json:"refused,omitzero"`
}

// marks count the cache marks of system prompt and tools.
type marks struct {
	System int `json:"system,omitzero"`
	Tools  int `json:"tools,omitzero"`
}

// made is the generation of the turns from a number on.
type made struct {
	Turn       int64 `json:"turn"`
	Generation int64 `json:"generation"`
}

// unknownGeneration is for a turn made under a history that no generation has.
const unknownGeneration = math.MaxInt32

// add notes the turn of a number.
func (p *prompts) add(number int64, t *Turn, generation int64) {
	last := int64(0)
	if n := len(p.Made); n > 0 {
		last = p.Made[n-1].Generation
	}
	if generation != last {
		p.Made = append(p.Made, made{number, generation})
	}
	if t.system != nil {
		p.Marks.System = t.marks.System
	}
	if t.tools != nil {
		p.Marks.Tools = t.marks.Tools
	}
	if t.system != nil && t.systemKey != p.System {
		p.System, p.Since = t.systemKey, t.since(number)
	}
	if t.tools != nil && t.toolsKey != p.Tools {
		p.Tools, p.Since = t.toolsKey, t.since(number)
	}
}

// since is the first turn made under the settings of t: t itself, or the next one if t names its base, under
// which its messages were made.
func (t *Turn) since(number int64) int64 {
	if t.expect != nil {
		return number + 1
	}
	return number
}

// retract drops the turns from a number on. Their settings stay in force.
func (p *prompts) retract(number int64) {
	i := slices.IndexFunc(p.Made, func(m made) bool { return m.Turn >= number })
	if i >= 0 {
		p.Made = slices.Clip(p.Made[:i]) // a fork shares them
	}
	p.Since, p.Refused = min(p.Since, number), min(p.Refused, number-1)
}

// under lists the turns up to last that were made under a generation and the present system prompt and tools.
func (p *prompts) under(generation, last int64) (out []render.Turns) {
	from, of := int64(1), int64(0)
	for i := 0; ; i++ {
		to := last
		if i < len(p.Made) {
			to = p.Made[i].Turn - 1
		}
		if from = max(from, p.Since, p.Refused+1); of == generation && from <= to {
			out = append(out, render.Turns{From: uint32(from), To: uint32(to)})
		}
		if i == len(p.Made) {
			return out
		}
		from, of = p.Made[i].Turn, p.Made[i].Generation
	}
}

// bindsThinking reports whether the model's thinking is valid only after the history it was made under: by
// the model's name, or by a refusal of its provider.
func (l *Ledger) bindsThinking() bool {
	return l.prompts.Refused > 0 || l.format.BindsThinking(l.model)
}

// thinkingAt returns which thinking a history under a generation keeps. For a model that may be an older one,
// the tool loop that was open when the history changed keeps its thinking as long as the generation lasts,
// and so does the one open now.
func (l *Ledger) thinkingAt(generation int64, entries []measure.Entry) render.Thinking {
	if !l.bindsThinking() {
		return render.Thinking{}
	}
	out := render.Thinking{Bound: true, Kept: l.prompts.under(generation, l.LastTurn())}
	if l.format.Thinking(l.model) == traits.Binds {
		return out
	}
	for _, turn := range []int64{l.LastTurn(), l.GenerationThrough(generation)} {
		loop := render.LoopAt(entries, turn)
		if refused := (events.Position{Turn: l.prompts.Refused, Index: math.MaxInt64}); loop.From.Compare(refused) < 0 {
			loop.From = refused
		}
		if turn > 0 {
			out.Loops = append(out.Loops, loop)
		}
	}
	return out
}

// Point is a session at the decision about a turn, before the effects of that.
type Point struct {
	Seq              measure.Seq    // of the turn
	Added            measure.Tokens // by the turn, by estimate alone
	Input, Published measure.Tokens // of its budget, and without any compaction
}

// Shift is a compaction or rewind on the way.
type Shift struct {
	Turn   int64          // last turn before it
	From   int64          // the generation whose view it changed
	Before measure.Tokens // as published
	Saved  measure.Tokens // 0 if turns that it changed were retracted
	Reason events.Reason
}

// Timeline returns a point for each turn, and a shift for each generation, the first one first.
func (l *Ledger) Timeline(c *Config) ([]Point, []Shift) {
	l.use(c)
	points, seqs := make([]Point, len(l.turns)), l.TurnSeqs()
	for i := range l.entries.n {
		e := *l.entries.at(i)
		none := editRecord{}
		none.on(&e)
		if at := int(e.Turn) - 1; at < len(points) {
			points[at].Added += l.cache.rate.Entry(&e)
		}
	}
	shifts := make([]Shift, len(l.generations))
	for i, g := range l.generations {
		n, _ := slices.BinarySearch(seqs, g.Seq+1)
		shifts[i] = Shift{cmp.Or(int64(n), g.Through), g.From, g.Before, g.Saved, g.Reason}
	}
	saved, next := measure.Tokens(0), 0
	for i := range points {
		for ; next < len(shifts) && shifts[next].Turn <= int64(i); next++ {
			saved += shifts[next].Saved
		}
		input := measure.Tokens(l.turns[i].input)
		points[i].Seq, points[i].Input, points[i].Published = seqs[i], input, max(input+saved, input)
	}
	return points, shifts
}
