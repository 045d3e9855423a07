package commit

import (
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/jsapi"
	"compactd/internal/events"
)

// Commit holds the messages of one commit in OUTCOMES, without those that an erasure removed.
type Commit[T any] struct {
	Messages []T
	// Marker ends the commit; nil if it was erased with its message.
	Marker *Stored
}

// Foreign counts messages of a partition that belong to no commit.
type Foreign struct {
	Messages    int
	First, Last uint64 // sequences in OUTCOMES
}

// Add adds the count of later messages.
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

// Assembler finds the commits among the messages of one partition. The caller adds all messages
// of the partition from some sequence on, in their order.
//
// A run is a single message or one atomic batch. It is a commit if its first message has a fence
// over the partition that matches the order of the stream, and its last message has a marker that
// continues the previous one: of the same owner and epoch, or of a later epoch, about the same log.
// An erasure may have removed the first or the last message of a run: then nothing is stored at
// its sequence. All other messages are foreign.
type Assembler[T any] struct {
	Partition int
	// Newest is the marker before the messages, if known.
	Newest Stored
	// Behind is the sequence of a later message of the partition, if all messages up to it are known.
	Behind uint64
	// From is the first sequence whose message is added. Earlier messages of a run count as those of a commit.
	From uint64
	// Stored reports whether OUTCOMES has a message at a sequence, of any partition.
	Stored func(seq uint64) (bool, error)
	// Commit receives each commit.
	Commit func(Commit[T]) error
	// Foreign receives the messages that belong to no commit. It may be nil.
	Foreign func(Foreign)

	prev uint64 // the last message before the run
	last uint64 // the last message added

	// The current run.
	id       string
	start    uint64 // sequence of its first message, even if that was erased
	fenced   bool
	headless bool // its first message was erased
	messages []T
	has      Foreign // counts its messages, in case they are foreign
}

// Add adds the next message. v is its value in the [Commit].
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

// begin starts a run with its first message that is stored.
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
		return nil //nolint:nilerr // a worker writes only readable markers
	}
	a.Newest = Stored{Marker: t.Marker, Seq: seq, commit: t.Commit}
	marker := a.Newest
	c := Commit[T]{a.messages, &marker}
	a.reset()
	return a.Commit(c)
}

// continues reports whether a marker may follow the newest one. If the fence was erased, the cursor
// or the commit id reveals a copy of an earlier marker.
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

// End ends the current run without its last message.
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
	if stored { // the batch continues in another partition
		a.drop()
		return nil
	}
	c := Commit[T]{Messages: a.messages}
	a.reset()
	return a.Commit(c)
}

// drop reports the current run as foreign.
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
