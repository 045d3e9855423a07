package client

import (
	"math"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// view is the effective history: the last published one, and the turns after it.
type view struct {
	prefix     []codec.Raw    // the last published history, up to through
	through    events.Through // zero if none was published
	own        []own          // the turns after it, in order
	last       int64          // number of the last turn
	generation int64          // of prefix; 0 if none was published
	parked     bool           // the log has turns behind a gap, which the next turn retracts
	retracted  retractions
	bound      bool  // the model's thinking goes only with the history that it was made under
	since      int64 // turns up to this one were made under another prompt, 0 for none
}

// own is a turn that is held apart from those before it.
type own struct {
	number   int64
	id       string // of its event; "" without one
	messages []codec.Raw

	generation int64 // that it was made under
}

// offer is a history that may replace the prefix.
type offer struct {
	generation int64
	through    events.Through
	messages   []codec.Raw
	bound      bool
}

// messages is the whole history in a slice of its own. If the model's thinking is bound to the messages
// before it, turns made under another generation or prompt lose theirs. If the model may be an older one,
// tool loops keep theirs that are open now, or were open when the prefix was made.
func (v *view) messages(f events.Format, bound, mayBind bool) []codec.Raw {
	prompts := func(t own) bool { return mayBind && f.HasPrompt(t.messages) }
	first, last := slices.IndexFunc(v.own, prompts), len(v.own)
	for i := range v.own {
		if prompts(v.own[i]) {
			last = i
		}
	}
	out := slices.Clone(v.prefix)
	if bound && v.since > 0 && v.through.Turn <= v.since {
		out = f.WithoutThinking(v.prefix)
	}
	for i, o := range v.own {
		inLoop := mayBind && (first < 0 || i < first || i >= last)
		if bound && !inLoop && (o.generation != v.generation || o.number <= v.since) {
			o.messages = f.WithoutThinking(o.messages)
		}
		out = append(out, o.messages...)
	}
	return out
}

// rebind notes that the next call has another prompt, or the first model that binds its
// thinking.
func (v *view) rebind() { v.since = v.last }

// accept swaps exactly the prefix when the offer is newer than the view, and contains no
// retracted turn: the agent's rule of docs/format/wire.md.
func (v *view) accept(o offer) bool {
	if o.generation <= v.generation || o.messages == nil || o.through.Turn < v.through.Turn || !v.retracted.allow(o.through) {
		return false
	}
	v.replacePrefix(o)
	return true
}

// replacePrefix puts an offer in place of everything up to its boundary.
func (v *view) replacePrefix(o offer) {
	v.prefix, v.through, v.generation, v.bound = o.messages, o.through, o.generation, o.bound
	v.own = slices.DeleteFunc(slices.Clone(v.own), func(t own) bool { return t.number <= o.through.Turn })
	v.last = max(v.last, o.through.Turn)
	v.retracted.prune(o.through.Seq)
}

// cut retracts the turns from a number on. It is false if they are part of the prefix: then the history must
// be read again.
func (v *view) cut(from int64) bool {
	v.last = min(v.last, from-1)
	v.since = min(v.since, v.last)
	v.own = slices.DeleteFunc(slices.Clone(v.own), func(t own) bool { return t.number >= from })
	if from == 1 { // nothing is left
		v.prefix, v.through = nil, events.Through{}
	}
	return from > v.through.Turn
}

// append adds the next turn.
func (v *view) append(t own) {
	v.own = append(v.own, t)
	v.last = t.number
}

// retraction is a turn that replaced others. Its sequence is unacknowledged until the
// acknowledgement has come.
type retraction struct {
	seq  uint64
	turn int64
}

const unacknowledged = math.MaxUint64

// retractions are the turns that an outcome decided before them still contains.
type retractions []retraction

// allow reports whether a history up to a boundary contains no retracted turn.
func (w retractions) allow(t events.Through) bool {
	return !slices.ContainsFunc(w, func(x retraction) bool { return x.seq > t.Seq && x.turn <= t.Turn })
}

// add records that the turns from a number on were retracted. Later ones that reach
// as far cover earlier ones, so the list stays short.
func (w *retractions) add(x retraction) {
	*w = append(slices.DeleteFunc(slices.Clone(*w), func(o retraction) bool { return o.turn >= x.turn && o.seq <= x.seq }), x)
}

// acknowledge sets the sequence of the retraction without one.
func (w retractions) acknowledge(seq uint64) {
	for i := range w {
		if w[i].seq == unacknowledged {
			w[i].seq = seq
		}
	}
}

// prune drops the retractions that every later outcome takes into account.
func (w *retractions) prune(seq uint64) {
	*w = slices.DeleteFunc(slices.Clone(*w), func(o retraction) bool { return o.seq <= seq })
}
