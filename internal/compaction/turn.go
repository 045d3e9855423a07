package compaction

import (
	"bytes"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/idents"
	"compactd/internal/events/weigh"
)

// Turn is a session.turn, measured.
type Turn struct {
	Seq    measure.Seq
	ID     string
	Time   int64 // of the log, in Unix milliseconds
	number int64 // 0 = the next
	from   int64 // replaces_from
	identity
	messages uint32         // number of them
	expect   *events.Expect // the required base, nil for any
	fork     *events.Fork   // where its session branched off, nil if it did not

	model    *events.Model // nil = unchanged
	format   events.Format // of its messages
	system   *weigh.Size   // nil = unchanged
	tools    *weigh.Size   // nil = unchanged
	override codec.Raw     // nil = unchanged

	systemKey, toolsKey dialect.Key // of system and tools
	marks               marks       // of these

	entries      []measure.Entry
	usage        *events.Usage // the provider's count, nil for none
	counted      events.Usage
	generation   int64        // generation of the counted view
	usageProblem string       // why a given usage could not be read
	fault        error        // reason to refuse it, unless it was taken before; not stored
	names        []idents.Key // identifiers used by the agent, while a summary waits or is made; not stored
}

// Turn measures a turn decoded for the session of l.
func (c *Config) Turn(l *Ledger, in *events.Scanned, seq measure.Seq) *Turn {
	return c.TurnInto(new(Turn), l, in, seq)
}

// TurnInto is like Turn, and reuses t, a turn that was decided.
func (c *Config) TurnInto(t *Turn, l *Ledger, in *events.Scanned, seq measure.Seq) *Turn {
	by := measure.Meter{Counter: c.counter, Pins: c.pins(l, in.Policy)}
	names := t.names[:0]
	*t = Turn{
		entries: t.entries[:0],
		Seq:     seq, ID: in.ID, number: max(in.Number, in.ReplacesFrom), from: in.ReplacesFrom, identity: identity{in.Digest, in.Settings},
		messages: uint32(len(in.Contents)), expect: in.Expect, fork: in.Fork,
		model: in.Model, format: in.Dialect, system: by.Field(in.System), tools: by.Field(in.Tools), override: bytes.Clone(in.Policy),
		systemKey: in.SystemKey, toolsKey: in.ToolsKey,
		marks:      marks{dialect.Marks(in.System), dialect.Marks(in.Tools)},
		generation: in.Generation, usageProblem: in.UsageProblem, fault: in.Fault,
	}
	if in.Usage != nil {
		t.counted = *in.Usage
		t.usage = &t.counted
	}
	t.entries = slices.Grow(t.entries, mostEntries(in.Contents))
	for i := range in.Contents {
		t.entries = by.Measure(t.entries, &in.Contents[i], measure.Entry{Seq: seq, Index: uint32(i)})
	}
	t.names = namesIn(names, l, in.Contents)
	return t
}

const (
	// maxNames bounds the identifiers counted in a turn, and those kept while a summary is made.
	maxNames = 256
	// maxNamed bounds the part of a text that is searched for them, in bytes.
	maxNamed = 8 << 10
)

// namesIn returns the identifiers in words and calls of an agent, if a summary is under way or waits. Without
// turns the ledger may not be the session's, so they are always returned.
func namesIn(out []idents.Key, l *Ledger, msgs []dialect.Message) []idents.Key {
	if l.job == nil && l.prepared == nil && l.LastTurn() > 0 {
		return out
	}
	for i := range msgs {
		for k := range msgs[i].Parts {
			for w := range idents.In(namingText(&msgs[i], &msgs[i].Parts[k])) {
				if len(out) < maxNames {
					out = append(out, idents.KeyOf(w))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// namingText is the text of a part in which an agent uses identifiers.
func namingText(m *dialect.Message, p *dialect.Part) string {
	text := ""
	switch {
	case m.Role != dialect.RoleAssistant:
	case p.Kind == dialect.PartCall:
		text = string(p.Args[:min(len(p.Args), maxNamed)])
	case p.Kind == dialect.PartText:
		text = p.Content()
	}
	return text[:min(len(text), maxNamed)]
}

// pins are the patterns of the policy in force for a turn: its own, else its session's.
func (c *Config) pins(l *Ledger, override codec.Raw) measure.Patterns {
	if override == nil || bytes.Equal(override, l.override) {
		if override = l.override; l.cache.config == c {
			return l.cache.policy.Pins
		}
	}
	policy := c.For(l.Address.Tenant)
	if override != nil {
		if p, err := policy.With(override); err == nil { // a turn with an invalid policy is refused
			return p.Pins
		}
	}
	return policy.Pins
}

// clone is a copy that shares no changing memory.
func (t *Turn) clone() *Turn {
	out := *t
	out.entries, out.names = slices.Clone(t.entries), nil
	if t.usage != nil {
		out.counted = *t.usage
		out.usage = &out.counted
	}
	return &out
}

// mostEntries bounds the entries of messages.
func mostEntries(msgs []dialect.Message) (n int) {
	for i := range msgs {
		n += max(1, len(msgs[i].Parts))
	}
	return n
}

// identity compares two turns of one number: equal turns are one turn, sent twice.
type identity struct {
	digest   events.Digest // of the messages
	settings dialect.Key   // of all other fields
}

// identityOf returns the identity of the taken or parked turn with this number; zero if there is none.
func (l *Ledger) identityOf(number int64) (x identity) {
	if number > 0 && number <= l.LastTurn() {
		x = l.turns[number-1].identity
	}
	for _, p := range l.parked {
		if p.number == number {
			x = p.identity
		}
	}
	return x
}

// verdict is the meaning of a turn for a ledger.
type verdict uint8

const (
	accept verdict = iota // it is the next turn, or replaces turns from one that is there
	ignore                // it was taken before
	park                  // turns before it are missing
	reject
)

// checkTurn returns an error for a turn that does not fit the config: calls or results without ids, an
// invalid policy, or a model without room for input.
func (l *Ledger) checkTurn(t *Turn) error {
	if t.fault != nil {
		return t.fault
	}
	c, policy := l.cache.config, l.cache.policy
	if t.override != nil {
		p, err := c.For(l.Address.Tenant).With(t.override)
		if err != nil {
			return err
		}
		policy = &p
	}
	const field = "model.max_output_tokens"
	if t.override == nil && t.model != nil && *t.model == l.model {
		return fits(field, t.model, l.cache.listed)
	}
	return c.fits(field, t.model, policy)
}

// admit decides about a turn by its number and its base. The code is set for reject.
func (l *Ledger) admit(t *Turn) (verdict, events.Code) {
	next := l.LastTurn() + 1
	if v := l.seen(t); v != accept {
		if v == reject {
			return reject, events.CodeTurnConflict
		}
		return v, ""
	}
	if whole, _ := l.base(); t.expect != nil && (*t.expect != events.Expect{Turn: l.LastTurn(), Digest: whole}) {
		return reject, events.CodeStaleBase
	}
	switch {
	case t.from > next:
		return reject, events.CodeOutOfRange
	case t.from != 1 && l.format != "" && t.format != l.format:
		return reject, events.CodeFormatChanged
	case t.number <= next:
		return accept, ""
	case len(l.parked) == maxParked:
		return reject, events.CodeTooManyParked
	default:
		return park, ""
	}
}

// seen compares a turn with an earlier one of its number. The worker compares number and content, never ids;
// the server drops a repeated message id.
func (l *Ledger) seen(t *Turn) verdict {
	switch old := l.identityOf(t.number); {
	case old == identity{}:
		return accept
	case old == t.identity:
		return ignore
	case t.from > 0:
		return accept
	default:
		return reject
	}
}

const (
	// maxRetracted bounds the remembered retracted ends of a history.
	maxRetracted = 8
	// maxBranches bounds the remembered branches; the log has all.
	maxBranches = 64
)

// lineages are remembered beside the history of a session, so that an earlier history is recognised when it
// returns. The lists are never changed once made: forks share them.
type lineages struct {
	Retracted  []Retracted   `json:"retracted,omitzero"` // the oldest first
	Branches   []dialect.Key `json:"branches,omitzero"`  // of their ids, the oldest first
	BranchedAt measure.Seq   `json:"branched_at,omitzero"`
}

// IsZero reports whether JSON leaves it out.
func (l lineages) IsZero() bool { return len(l.Retracted)+len(l.Branches) == 0 }

func (l lineages) clip() lineages {
	l.Retracted, l.Branches = slices.Clip(l.Retracted), slices.Clip(l.Branches)
	return l
}

// Retracted is the retracted end of a history, identified by its first turn.
type Retracted struct {
	Base     events.Digest `json:"base,omitzero"` // of the session before that turn
	First    events.Digest `json:"first"`         // of the messages of that turn
	Messages uint32        `json:"messages"`      // of that turn
}

// noteRetracted remembers the turns from number k on, which are about to be retracted.
func (l *Ledger) noteRetracted(k int64) {
	x := Retracted{First: l.turns[k-1].digest, Messages: l.messagesOf(int(k - 1))}
	if k > 1 {
		x.Base = l.turns[k-2].whole
	}
	if x.Messages == 0 {
		return // nothing identifies it
	}
	l.lineages.Retracted = pushed(l.lineages.Retracted, x, maxRetracted)
}

// addBranch remembers a branch. A session without turns has no ledger to remember it in.
func (l *Ledger) addBranch(id string, seq measure.Seq) {
	if l.LastTurn() == 0 {
		return
	}
	if !l.HasBranch(id) { // else it is named again
		l.lineages.BranchedAt = seq
	}
	l.lineages.Branches = pushed(l.lineages.Branches, dialect.KeyOf(id), maxBranches)
}

// pushed returns a list of at most most values that ends with x, without duplicates of x.
func pushed[T comparable](list []T, x T, most int) []T {
	out := slices.DeleteFunc(slices.Clone(list), func(y T) bool { return y == x })
	return append(out[max(0, len(out)+1-most):], x)
}

// Retracted lists the last retracted ends of the history, the oldest first.
func (l *Ledger) Retracted() []Retracted { return slices.Clone(l.lineages.Retracted) }

// HasBranch reports whether a session is one of the remembered branches.
func (l *Ledger) HasBranch(id string) bool {
	return slices.Contains(l.lineages.Branches, dialect.KeyOf(id))
}

// Branched is the sequence of the event that first named the last new branch, 0 for none.
func (l *Ledger) Branched() measure.Seq { return l.lineages.BranchedAt }

// AwaitedAfter lists the calls without a result at the end of a turn, by the keys of their ids, 0 for a call
// without an id. A call is no longer awaited once anything but a result follows it.
func (l *Ledger) AwaitedAfter(turn int64) (open []dialect.Key) {
	end := l.entries.search(events.Position{Turn: turn + 1})
	answered, calls := map[dialect.Key]int{}, false
	for i := end - 1; i >= max(0, end-maxLookback); i-- {
		switch e := l.entries.at(i); {
		case e.Kind == measure.KindCall:
			calls = true
			if answered[e.Call]--; answered[e.Call] < 0 {
				open = append(open, e.Call)
			}
		case e.Kind == measure.KindResult && !calls:
			answered[e.Call]++
		case e.Kind == measure.KindResult || e.Role != measure.RoleAssistant:
			return open
		}
	}
	return open
}
