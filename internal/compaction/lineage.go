package compaction

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

const (
	// maxRetracted is how many retracted ends of a history are remembered.
	maxRetracted = 8
	// maxBranches is how many of its branches a ledger remembers; the log has them all.
	maxBranches = 64
)

// lineages is what a session remembers beside its history, so that a history which comes back
// is recognised. The lists are not changed once they are made: forks share them.
type lineages struct {
	Retracted  []Retracted   `json:"retracted,omitzero"` // the oldest first
	Branches   []measure.Key `json:"branches,omitzero"`  // of their ids, the oldest first
	BranchedAt Seq           `json:"branched_at,omitzero"`
}

// IsZero reports whether there is nothing, for its JSON.
func (x lineages) IsZero() bool { return len(x.Retracted)+len(x.Branches) == 0 }

func (x lineages) clip() lineages {
	x.Retracted, x.Branches = slices.Clip(x.Retracted), slices.Clip(x.Branches)
	return x
}

// Retracted is the end of a history that was retracted, by its first turn.
type Retracted struct {
	Base     events.Digest `json:"base,omitzero"` // of the session before that turn
	First    events.Digest `json:"first"`         // of the messages of that turn
	Messages uint32        `json:"messages"`      // of that turn
}

// noteRetracted remembers the turns from number k on, which are about to be retracted.
func (l *Ledger) noteRetracted(k int64) {
	t, x := &l.turns[k-1], Retracted{}
	x.First, x.Messages = t.digest, t.end
	if k > 1 {
		before := &l.turns[k-2]
		x.Base, x.Messages = before.whole, t.end-before.end
	}
	if x.First == (events.Digest{}) || x.Messages == 0 || k > 1 && x.Base == (events.Digest{}) {
		return // of a ledger of 0.1.0, or there is nothing to recognise it by
	}
	l.lineages.Retracted = pushed(l.lineages.Retracted, x, maxRetracted)
}

// addBranch remembers a branch. A session without turns has no ledger to remember it in.
func (l *Ledger) addBranch(id string, seq Seq) {
	if l.LastTurn() == 0 {
		return
	}
	l.lineages.Branches = pushed(l.lineages.Branches, measure.Key(events.KeyOf(id)), maxBranches)
	l.lineages.BranchedAt = seq
}

// pushed returns a list of at most most values that ends with x, which it has once.
func pushed[T comparable](list []T, x T, most int) []T {
	out := slices.DeleteFunc(slices.Clone(list), func(y T) bool { return y == x })
	return append(out[max(0, len(out)+1-most):], x)
}

// Retracted lists the ends of the history that were retracted last, the oldest first.
func (l *Ledger) Retracted() []Retracted { return slices.Clone(l.lineages.Retracted) }

// HasBranch reports whether a session is one of the branches that are remembered.
func (l *Ledger) HasBranch(id string) bool {
	return slices.Contains(l.lineages.Branches, measure.Key(events.KeyOf(id)))
}

// Branched is the sequence of the event that named the last branch, 0 for none.
func (l *Ledger) Branched() Seq { return l.lineages.BranchedAt }

// AwaitedAfter lists the calls that have no result when a turn ends, by the keys of their ids: 0
// for one without an id. Calls that something else than a result follows are awaited no more.
func (l *Ledger) AwaitedAfter(turn int64) (open []measure.Key) {
	end := l.entries.search(func(e *Entry) int { return e.Compare(events.Position{Turn: turn + 1}) })
	answered, calls := map[measure.Key]int{}, false
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
