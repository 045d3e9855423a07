package client

import (
	"math"
	"slices"

	"compactd/internal/events"
)

// view is the effective history: what was told last, and the turns after it.
type view struct {
	prefix     []events.Raw   // the history told last, up to the border through
	through    events.Through // zero when nothing was told
	own        []own          // the turns after it, in order
	last       int64          // number of the last turn
	generation int64          // of prefix; 0 when nothing was told
	withdrawn  withdrawals
}

// own is a turn that is held apart from those before it.
type own struct {
	number   int64
	id       string // of its event; "" when it had none
	messages []events.Raw
}

// offer is a history that may take the place of the prefix.
type offer struct {
	generation int64
	through    events.Through
	messages   []events.Raw
}

// messages is the whole history in a slice of its own.
func (v *view) messages() []events.Raw {
	out := slices.Clone(v.prefix)
	for _, o := range v.own {
		out = append(out, o.messages...)
	}
	return out
}

// take swaps exactly the prefix when the offer is newer than what is held, and may
// be used: the agent's rule of docs/format/wire.md.
func (v *view) take(o offer) bool {
	if o.generation <= v.generation || o.messages == nil || o.through.Turn < v.through.Turn || !v.withdrawn.allow(o.through) {
		return false
	}
	v.base(o)
	return true
}

// base puts an offer in place of everything up to its border.
func (v *view) base(o offer) {
	v.prefix, v.through, v.generation = o.messages, o.through, o.generation
	v.own = slices.DeleteFunc(slices.Clone(v.own), func(t own) bool { return t.number <= o.through.Turn })
	v.last = max(v.last, o.through.Turn)
	v.withdrawn.forget(o.through.Seq)
}

// cut withdraws the turns from a number on. It reports false when a part of the
// prefix goes with them, so that the history is no longer known.
func (v *view) cut(from int64) bool {
	v.last = min(v.last, from-1)
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

// withdrawal is a turn that took others back. Its sequence is not known before it is
// acknowledged: unacknowledged until then.
type withdrawal struct {
	seq  uint64
	turn int64
}

const unacknowledged = math.MaxUint64

// withdrawals are those that an outcome decided before them does not know of.
type withdrawals []withdrawal

// allow reports whether a history up to a border holds no turn that was withdrawn.
func (w withdrawals) allow(t events.Through) bool {
	return !slices.ContainsFunc(w, func(x withdrawal) bool { return x.seq > t.Seq && x.turn <= t.Turn })
}

// add notes that the turns from a number on were taken back. Later ones that reach
// as far cover earlier ones, so the list stays short.
func (w *withdrawals) add(x withdrawal) {
	*w = append(slices.DeleteFunc(slices.Clone(*w), func(o withdrawal) bool { return o.turn >= x.turn && o.seq <= x.seq }), x)
}

// settle sets the sequence of the one that was not acknowledged.
func (w withdrawals) settle(seq uint64) {
	for i := range w {
		if w[i].seq == unacknowledged {
			w[i].seq = seq
		}
	}
}

// forget drops those that every outcome from now on knows of.
func (w *withdrawals) forget(seq uint64) {
	*w = slices.DeleteFunc(slices.Clone(*w), func(o withdrawal) bool { return o.seq <= seq })
}
