package commit

import (
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/jsapi"
	"compactd/internal/events"
)

// Commit is the messages of one commit as OUTCOMES holds them, or what an erasure has left of
// them.
type Commit[T any] struct {
	Messages []T
	// Marker ends the commit; nil where it was erased with its message.
	Marker *Stored
}

// Foreign counts messages of a partition that belong to no commit.
type Foreign struct {
	Messages    int
	First, Last uint64 // sequences in OUTCOMES
}

// Add counts messages that come after.
func (f *Foreign) Add(g Foreign) {
	if g.Messages == 0 {
		return
	}
	if f.Messages == 0 {
		f.First = g.First
	}
	f.Messages += g.Messages
	f.Last = g.Last
}

// Assembler finds the commits among the messages of one partition. They are given in their
// order, all that the partition has from some sequence on.
//
// A run is one message, or what the server stored as one atomic batch. It is a commit if its
// first message has a fence over the partition that holds in the order of the stream, and
// its last a marker that continues the one before: of the same owner and epoch, or of a later
// epoch, about the same log. An erasure may have taken the first message of a run, or the last:
// then nothing is stored at its sequence. All other messages are foreign.
type Assembler[T any] struct {
	Partition int
	// Newest is a marker before the messages, if one is known.
	Newest Stored
	// Behind is a message of the partition behind that marker, where all up to there is known.
	Behind uint64
	// From is the first sequence whose message is given. Earlier messages of a run are taken for ours.
	From uint64
	// Stored reports whether OUTCOMES has a message at a sequence, of any partition.
	Stored func(seq uint64) (bool, error)
	// Commit receives each commit.
	Commit func(Commit[T]) error
	// Foreign receives what is of no commit; nil for none.
	Foreign func(Foreign)

	prev uint64 // the last message before the run
	last uint64 // message that was given

	// The run at hand.
	id       string
	start    uint64 // sequence that its first message has, or had
	fenced   bool
	headless bool // its first message was erased
	messages []T
	has      Foreign // its messages, should they be foreign
}

// Add takes the next message, and v with it.
func (a *Assembler[T]) Add(h nats.Header, seq uint64, v T) error {
	id, place := jsapi.First(h, jsapi.HeaderBatchID), uint64(1)
	if id != "" {
		place = max(jsapi.ParseSeq(jsapi.First(h, jsapi.HeaderBatchSeq)), 1)
	}
	if id == "" || id != a.id || place == 1 || seq != a.start+place-1 {
		if err := a.End(); err != nil {
			return err
		}
		if err := a.begin(h, id, seq, place); err != nil {
			return err
		}
	}
	a.messages = append(a.messages, v)
	a.has.Add(Foreign{1, seq, seq})
	a.last = seq
	if id != "" && jsapi.First(h, jsapi.HeaderBatchCommit) == "" {
		return nil
	}
	return a.finish(h, seq)
}

// begin starts a run with its first message that is there.
func (a *Assembler[T]) begin(h nats.Header, id string, seq, place uint64) error {
	fence := jsapi.First(h, jsapi.HeaderFence)
	after := jsapi.ParseSeq(fence)
	a.prev, a.id, a.start = max(a.last, a.Newest.Seq, a.Behind), id, seq-min(place-1, seq)
	a.fenced = jsapi.Unfenced() || fence != "" && jsapi.First(h, jsapi.HeaderFenceSubject) == events.OutcomeFilter(a.Partition) &&
		a.prev <= after && after < seq
	if place == 1 || a.prev >= a.start {
		return nil
	}
	if a.start < a.From {
		a.fenced, a.headless = true, true
		return nil
	}
	stored, err := a.Stored(a.start)
	a.fenced, a.headless = !stored, !stored
	return err
}

// finish ends a run with its last message.
func (a *Assembler[T]) finish(h nats.Header, seq uint64) error {
	t, ok, err := parseHeader(h)
	if err != nil || !ok || !a.fenced || !a.continues(t) {
		a.drop()
		return nil //nolint:nilerr // no worker writes a marker that cannot be read
	}
	a.Newest = Stored{Marker: t.Marker, Seq: seq, commit: t.Commit}
	marker := a.Newest
	c := Commit[T]{a.messages, &marker}
	a.reset()
	return a.Commit(c)
}

// continues reports whether a marker may follow the newest one. Where the fence was erased, a copy
// of an earlier marker shows by its cursor, or its commit.
func (a *Assembler[T]) continues(t markerText) bool {
	before := a.Newest
	switch {
	case before.Seq == 0:
		return true
	case t.LogCreated != before.LogCreated && t.LogCreated != 0 && before.LogCreated != 0,
		a.headless && (t.Cursor < before.Cursor || t.Commit == before.commit):
		return false
	}
	return t.Epoch > before.Epoch || t.Epoch == before.Epoch && t.Owner == before.Owner
}

// End ends the run at hand where its last message is missing.
func (a *Assembler[T]) End() error {
	if len(a.messages) == 0 {
		return nil
	}
	stored := !a.fenced
	if a.fenced {
		var err error
		if stored, err = a.Stored(a.last + 1); err != nil {
			return err
		}
	}
	if stored { // the batch goes on in another partition
		a.drop()
		return nil
	}
	c := Commit[T]{Messages: a.messages}
	a.reset()
	return a.Commit(c)
}

// drop reports the run at hand as foreign.
func (a *Assembler[T]) drop() {
	f := a.has
	a.reset()
	if a.Foreign != nil {
		a.Foreign(f)
	}
}

func (a *Assembler[T]) reset() {
	a.id, a.messages, a.has, a.fenced, a.headless = "", nil, Foreign{}, false, false
}
