package compaction

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/idents"
	"compactd/internal/events/traits"
	"compactd/internal/events/weigh"
)

// maxParked is the number of turns that may wait for a missing one.
const maxParked = 64

// Ledger is a worker's state of one session: sizes and sequence numbers, no text. It is a cache of the log
// and of the published outcomes.
type Ledger struct {
	Address events.Address

	// Set by one turn, until another changes it.
	model     events.Model
	format    events.Format
	system    weigh.Size  // of the system prompt
	tools     weigh.Size  // of their definitions
	systemSeq measure.Seq // of the turn that set the system prompt
	toolSeq   measure.Seq // of the turn that set the tools
	override  codec.Raw   // the session's own policy
	forkedAt  *Forked     // where it branched off, nil if it is no branch
	lineages  lineages    // its retracted ends and its branches
	prompts   prompts     // facts that the model's thinking is bound to

	turns       []turnRecord // turns[i] is turn i+1
	entries     chunks
	hidden      []span       // ranges hidden by any generation, in their order
	edits       []editRecord // edits of single entries, in the same order
	compactedTo int          // entries covered by the last compaction: the agent has them repaired
	parked      []*Turn
	level       events.Level
	lastTurnAt  int64          // time of the last turn, in Unix milliseconds of the log
	idleHandled bool           // the idle period since then was handled
	ages        []age          // approximate times of sequences
	attempted   measure.Tokens // estimated input after the last compaction that stayed at or above the trigger
	whileOpen   bool           // calls were open then, and no stage may change an open call
	blockedAt   int64          // turn of the plan since which the session is above its limit, 0 if it is not
	usage       calibration
	limits      limits
	overflows   int64 // refusals as too long since a call last succeeded

	generations []generation // generations[i] is generation i+1

	noted []uint32      // hashes of the notes about turns, so that each is given once
	notes []events.Note // about the turns that were taken last; not stored

	job      *pendingJob
	prepared *stage.Summary
	named    []idents.Key // used by the agent since job was requested
	breaker  breaker
	growth   growth
	regret   measure.Regret
	cost     events.Cost
	carried  measure.Tokens // input of the last call, while the provider may have it in its cache
	made     events.SummaryCounts
	took     []int64 // times of the last summaries, in milliseconds

	work    work    // of requests
	changed changed // since it was stored
	held    int64   // the last turn that no decision changes; of an [Alone], and not stored

	cache budgetCache
}

// turnRecord is the record of one turn.
type turnRecord struct {
	identity
	whole events.Digest // of the session up to the turn, see [events.Digest.With]
	end   uint32        // messages of the session up to the turn
	input uint32        // estimated at the decision about the turn
	seq   measure.Seq   // in the log
}

// span hides the entries of positions from ≤ i < to behind a truncation notice, or behind the summary at seq.
type span struct {
	From  int         `json:"from"`
	To    int         `json:"to"`
	Gen   int64       `json:"gen"`
	Seq   measure.Seq `json:"seq"`
	Units int64       `json:"units"`

	Spares measure.Spares `json:"spares,omitzero"` // those in the summary
}

// budgetCache follows from a ledger, its model and a config. It is recomputed when one of them changes, and
// updated by sums in between.
type budgetCache struct {
	config  *Config
	policy  *policy.Policy
	rate    measure.Rate
	custom  measure.Custom // of the profile
	listed  measure.Tokens // window of the model, stated or from a table
	input   measure.Tokens // limit of the model beside its window, 0 for none
	noted   bool           // the note that the model is unknown was given
	window  measure.Tokens
	largest measure.Tokens // window of any model
	reserve measure.Tokens // for the answer
	least   measure.Tokens // lower bound of the reserve, beside a large fixed part
	prices  measure.Prices
	priced  bool           // the model has prices
	dearer  measure.Tokens // input above which each token costs more; see [Ledger.dearer]
	visible measure.Tokens // the history in view: emitted up to the last compaction, unchanged since
	bytes   int64          // of the contents in view
	entries int            // in view
	heads   int            // of messages in view
	media   measure.MediaCount
	takes   traits.Media // the provider's limits of media
	hides   bool         // the model hides its thinking
}

// NewLedger returns the ledger of a session before its first turn.
func NewLedger(a events.Address) *Ledger { return &Ledger{Address: a, level: events.LevelOK} }

// Generation is the number of compactions so far.
func (l *Ledger) Generation() int64 { return int64(len(l.generations)) }

// LastTurn is the number of the last turn taken, 0 before the first.
func (l *Ledger) LastTurn() int64 { return int64(len(l.turns)) }

// HasTurns reports whether the ledger holds any turn, taken or parked.
func (l *Ledger) HasTurns() bool { return len(l.turns)+len(l.parked) > 0 }

// Received reports whether the turn of a number was taken, or is parked.
func (l *Ledger) Received(number int64) bool {
	return number <= l.LastTurn() || slices.ContainsFunc(l.parked, func(t *Turn) bool { return t.number == number })
}

// TurnSeqs returns the sequences of the session's turns in the log, turn 1 first, without retracted and
// parked turns.
func (l *Ledger) TurnSeqs() []measure.Seq {
	out := make([]measure.Seq, len(l.turns))
	for i := range l.turns {
		out[i] = l.turns[i].seq
	}
	return out
}

// Chain lists the identities of the session's turns, turn 1 first.
func (l *Ledger) Chain() []events.Link {
	out := make([]events.Link, len(l.turns))
	for i := range l.turns {
		t := &l.turns[i]
		out[i] = events.Link{Digest: t.digest, Whole: t.whole, End: t.end, Seq: uint64(t.seq)}
	}
	return out
}

// base returns the digest of the session after its last turn, and its number of messages.
func (l *Ledger) base() (whole events.Digest, messages uint32) {
	if n := len(l.turns); n > 0 {
		return l.turns[n-1].whole, l.turns[n-1].end
	}
	return whole, 0
}

// addTurn adds the record of a turn with so many messages.
func (l *Ledger) addTurn(x identity, seq measure.Seq, messages uint32) {
	whole, end := l.base()
	l.turns = append(l.turns, turnRecord{x, whole.With(x.digest, int(messages)), end + messages, 0, seq})
}

// Forked is the place where a session branched off. Turns of the other session at Seq or later are not
// shared.
type Forked struct {
	events.Fork
	Seq measure.Seq `json:"seq,omitzero"` // of the turn that names it
}

// ForkedFrom is the place where the session branched off, nil if it is no branch.
func (l *Ledger) ForkedFrom() *Forked {
	if l.forkedAt == nil || l.forkedAt.Seq > 0 || len(l.turns) == 0 {
		return l.forkedAt
	}
	return &Forked{l.forkedAt.Fork, l.turns[0].seq} // of a ledger that was stored without the sequence
}

// Format is the dialect of the session, "" before its first turn.
func (l *Ledger) Format() events.Format { return l.format }

// fork returns a ledger that can take a turn without changing l. It appends to the slices of l, so a later
// fork overwrites an earlier one.
func (l *Ledger) fork() *Ledger {
	var f Ledger
	l.forkInto(&f)
	return &f
}

func (l *Ledger) forkInto(f *Ledger) {
	*f = *l
	f.hidden = slices.Clip(l.hidden)
	f.parked = slices.Clone(l.parked)
	f.lineages = l.lineages.clip()
}

// use makes the cache fit a config. The cache follows from the ledger and the config, so a ledger from a
// checkpoint decides like the original.
func (l *Ledger) use(c *Config) {
	if l.cache.config == c {
		return
	}
	l.cache.config = c
	l.measure()
}

// measure recomputes everything that follows from model, policy and config.
func (l *Ledger) measure() {
	policy := l.cache.config.For(l.Address.Tenant)
	if l.override != nil {
		if p, err := policy.With(l.override); err == nil { // it was checked with the turn; another config may refuse it
			policy = &p
		}
	}
	l.measureWith(policy)
}

// measureWith recomputes everything that follows from model and policy.
func (l *Ledger) measureWith(policy *policy.Policy) {
	g := &l.cache
	g.policy = policy
	g.rate = measure.RateOf(measure.Profiles[policy.Profile], l.model.Provider, l.model.Name)
	g.rate.Recall = policy.NamesPlaces()
	g.custom = measure.CustomOf(policy.Profile)
	g.listed, g.input, g.noted = g.config.windowOf(&l.model, policy), measure.InputLimit(l.model.Name), false
	g.takes = traits.MediaOf(l.model.Provider, l.model.Name, int64(g.listed))
	g.hides = traits.HidesThinking(l.model.Name)
	g.prices, g.priced = g.config.Prices.Of(l.model.Name)
	l.bound()
	l.recount()
}

// bound recomputes the values that follow from the window: the model's, with the limits that its provider
// showed. Its cost does not grow with the session.
func (l *Ledger) bound() {
	g, x := &l.cache, &l.limits
	g.largest = g.config.largest
	g.window = x.raise(g.listed, g.policy)
	if x.Stated > 0 {
		g.window = min(g.window, x.Stated)
	}
	g.reserve = measure.OutputReserve(g.window, measure.Tokens(l.model.MaxOutputTokens))
	if g.policy.LearnReserve && l.model.MaxOutputTokens == 0 {
		g.reserve = x.reserve(g.reserve)
	}
	g.reserve = g.policy.Reserve(min(g.reserve, g.window))
	g.least = 0
	if g.input > 0 {
		g.least = g.window - max(g.input, x.Accepted)
		g.reserve = max(g.reserve, g.least)
	}
	if learnt := x.input(); learnt > 0 {
		g.window = min(g.window, g.reserve+max(learnt, leastLearnt.Share(g.window-g.reserve)))
		g.least = g.reserve
	}
	if l.model.MaxOutputTokens > 0 {
		g.least = g.reserve
	}
	g.dearer = l.dearer()
}

// thresholds divide the window.
func (l *Ledger) thresholds() policy.Thresholds { return l.thresholdsOf(l.prompt()) }

// thresholdsOf are those of a prompt.
func (l *Ledger) thresholdsOf(p measure.Prompt) policy.Thresholds {
	g := &l.cache
	fixed := l.fixed(p)
	return g.policy.Thresholds(g.window, max(g.least, g.policy.ReserveBeside(fixed, g.window, g.reserve)), fixed, g.dearer)
}

// fixed is the part of a prompt that no compaction reduces: system prompt, leading system messages and tools.
// It includes the counted tokens beyond our estimate that belong to no content.
func (l *Ledger) fixed(p measure.Prompt) measure.Tokens {
	return l.usage.scaled(p.System+p.Tools+l.leading()) + l.usage.Fixed
}

// mostLeading bounds the entries that count as leading: a turn must not cost the whole view.
const mostLeading = 64

// leading is the cost of the leading system messages.
func (l *Ledger) leading() (sum measure.Tokens) {
	for i := range min(l.entries.n, mostLeading) {
		e := l.entries.at(i)
		if e.Role != measure.RoleSystem {
			break
		}
		sum += l.cache.rate.Entry(e)
	}
	return sum
}

// recount sums up what is visible.
func (l *Ledger) recount() {
	g, view := &l.cache, l.visible()
	since := len(view) - (l.entries.n - l.compactedTo) // nothing is hidden after the last compaction
	repaired, fresh := stage.NewDraft(view[:since], l.format, g.rate), stage.NewDraft(view[since:], l.format, g.rate)
	g.visible = repaired.Repaired() + fresh.Tokens()
	g.bytes, g.media, g.entries, g.heads = measure.BytesOf(view), measure.CountMedia(view), len(view), repaired.Messages()+fresh.Messages()
}

// Policy returns the policy of the session under the last config, with the session's own fields; before the
// first config it is empty.
func (l *Ledger) Policy() policy.Policy {
	if l.cache.config == nil {
		return policy.Policy{}
	}
	return *l.cache.policy
}

// Budget returns the state of the session's window under the last config; before the first config it is
// empty.
func (l *Ledger) Budget() events.Budget {
	if l.cache.config == nil {
		return events.Budget{}
	}
	return l.check(l.prompt())
}

// check corrects a prompt and compares it with the window.
func (l *Ledger) check(p measure.Prompt) events.Budget {
	g := &l.cache
	p.Correction, p.Fixed = l.corrected(p.Total())-p.Total(), l.fixed(p)
	m := l.thresholdsOf(p)
	b := m.BudgetOf(p, g.window, g.policy)
	b.Generation = l.Generation()
	return b
}

// prompt estimates the next call, without correction.
func (l *Ledger) prompt() measure.Prompt {
	g := &l.cache
	p := measure.Prompt{
		History: g.visible + g.rate.PerConversation,
		Tools:   g.custom.Measured(g.rate, l.tools),
	}
	if l.entries.n == 0 {
		p.History = 0
	}
	if l.system.Units > 0 {
		p.System = g.rate.Sized(l.system) + g.rate.PerMessage
	}
	return p
}

// estimated is the input of the next call, corrected by usage.
func (l *Ledger) estimated() measure.Tokens { return l.corrected(l.prompt().Total()) }

// visible lists the entries in view.
func (l *Ledger) visible() []measure.Entry { return l.appendVisible(nil) }

// appendVisible appends the entries in view.
func (l *Ledger) appendVisible(out []measure.Entry) []measure.Entry {
	return l.view(out, l.lineage(l.Generation()))
}

// draft is the history in view, as a draft for stages.
func (l *Ledger) draft() *stage.Draft {
	d := stage.NewDraft(l.visible(), l.format, l.cache.rate)
	d.Hold(l.held)
	d.Pin(l.availableFor(l.thresholds().Target), l.fresh(2))
	return d
}

// history is the history in view, for a plan.
func (l *Ledger) history() stage.History {
	return stage.History{
		View: l.appendVisible, Format: l.format, Rate: l.cache.rate,
		Pins: l.availableFor(l.thresholds().Target), Held: l.held, Fresh: l.fresh(2),
		Media: l.cache.takes, Refused: l.cache.media.Over(l.cache.takes),
	}
}

// view appends the entries that a lineage leaves in view, with a truncation notice or summary for each hidden
// range.
func (l *Ledger) view(out []measure.Entry, in []bool) []measure.Entry {
	gaps := l.gaps(in)
	n := l.entries.n + len(gaps)
	for _, s := range gaps {
		n -= s.To - s.From
	}
	out, from := slices.Grow(out, n), 0
	for _, s := range gaps {
		out = append(l.entries.appendTo(out, from, s.From), l.placeholderOf(s))
		out = append(out, l.restored(s, in)...)
		out = l.kept(out, s)
		from = s.To
	}
	return l.entries.appendTo(out, from, l.entries.n)
}

// gaps lists the hidden ranges of a lineage, in order and without overlap: a later range takes over the
// shared part of earlier ones.
func (l *Ledger) gaps(in []bool) []span {
	var out, next []span
	for _, s := range l.hidden {
		if !in[s.Gen] {
			continue
		}
		next = next[:0]
		for _, g := range out {
			if g.From < s.From && s.From < g.To { // its turns came back in between
				next = append(next, span{From: g.From, To: s.From, Gen: g.Gen, Seq: g.Seq, Units: g.Units, Spares: g.Spares})
				g.From = s.From
			}
			if g.From < s.To && g.To > s.From {
				g.From = s.To
			}
			if g.From < g.To {
				next = append(next, g)
			}
		}
		next = append(next, s)
		slices.SortFunc(next, func(a, b span) int { return a.From - b.From })
		out, next = next, out
	}
	return out
}

// placeholderOf returns the entry that stands in for a hidden range.
func (l *Ledger) placeholderOf(s span) measure.Entry {
	e := measure.TruncationAt(l.entries.at(s.From))
	if s.Seq != 0 {
		e = measure.Entry{Seq: s.Seq, Kind: measure.KindSummary, Role: measure.RoleUser, Flags: measure.FlagFirst, Parts: 1, Text: uint32(s.Units)}
		e.SetSpares(s.Spares)
	} else if s.Units > 0 {
		e.Text = uint32(s.Units)
	}
	e.Covers(measure.MessageOf(l.entries.at(s.From).Position()), measure.MessageOf(l.entries.at(s.To-1).Position()))
	return e
}

// maxLookback bounds the entries before a result that are searched for its call: a turn must cost the same in
// any session.
const maxLookback = 512

// link gives a result the facts of its call: tool, file and variant. It searches back to the assistant's call
// at most.
func (l *Ledger) link(e *measure.Entry) {
	if e.Kind != measure.KindResult {
		return
	}
	if call := l.callOf(e, l.entries.n); call >= 0 {
		e.Inherit(l.entries.at(call))
	}
}

// callOf returns the position of the call of a result at position n, −1 if it is not near.
func (l *Ledger) callOf(e *measure.Entry, n int) int {
	var all, same openLately // of this exchange: any, and those of the same tool
	inCalls := false
	for i := n - 1; i >= 0; i-- {
		if i < n-maxLookback {
			return -1
		}
		x := l.entries.at(i)
		if x.Role != measure.RoleAssistant && inCalls {
			break
		}
		inCalls = x.Role == measure.RoleAssistant
		switch x.Kind {
		case measure.KindResult:
			all.answered++
			if x.Tool == e.Tool {
				same.answered++
			}
		case measure.KindCall:
			if e.Call != 0 && x.Call == e.Call {
				return i
			}
			all.calls = append(all.calls, i)
			if x.Tool == e.Tool {
				same.calls = append(same.calls, i)
			}
		}
	}
	switch {
	case e.Call != 0:
		return -1
	case e.Tool != 0 && len(same.calls) > 0: // without ids the tool decides, and else the order
		return same.oldest()
	default:
		return all.oldest()
	}
}

// openLately are calls, newest first, with the number of results.
type openLately struct {
	calls    []int
	answered int
}

// oldest returns the oldest open call, −1 if there is none.
func (o *openLately) oldest() int {
	if o.answered >= len(o.calls) {
		return -1
	}
	return o.calls[len(o.calls)-1-o.answered]
}

// Bytes in memory of the repeated parts of a ledger; a test compares them with the types.
const (
	heldTurn = 56
	heldSpan = 64
	heldEdit = 20
	heldRest = 1 << 10 // everything else of a ledger, as a round figure
)

// Weight is the approximate memory of the ledger in bytes: the parts that grow with the session, and a round
// figure for the rest.
func (l *Ledger) Weight() int {
	n := heldRest + chunkStart(len(l.entries.list))*measure.HeldEntry
	n += cap(l.turns)*heldTurn + cap(l.hidden)*heldSpan + cap(l.edits)*heldEdit
	for _, t := range l.parked {
		n += len(t.entries) * measure.HeldEntry
	}
	return n
}
