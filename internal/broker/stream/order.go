package stream

import (
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// orderFilter passes the messages of one consumer after the other, one at a time, in order,
// until it is closed.
type orderFilter struct {
	fn func(jetstream.Msg, *jetstream.MsgMetadata) error // set before the first message; an error closes the filter

	mu       sync.Mutex // held while fn runs
	closed   bool
	last     uint64 // stream sequence
	consumer string // the newest: what the others still deliver is not wanted
	seq      uint64 // of last, in consumer
	idleAt   uint64 // last, when idle was called
}

var errGap = errors.New("messages are missing")

// begin lets only messages of a new consumer pass from here on, and returns the stream
// sequence of the last that did.
func (g *orderFilter) begin(consumer string) (last uint64) {
	g.mu.Lock() // waits for fn: what it is at has passed
	defer g.mu.Unlock()
	g.consumer, g.seq = consumer, 0
	return g.last
}

// pass hands m to fn. After an error of fn the filter is closed, after any other the next
// consumer is to begin.
func (g *orderFilter) pass(delivered *nats.Msg) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	m, err := newMessage(delivered)
	if err != nil {
		return err
	}
	switch md := m.metadata; {
	case md.Consumer != g.consumer:
		return nil
	case md.Sequence.Consumer != g.seq+1:
		return errGap
	case md.Sequence.Stream <= g.last:
		return fmt.Errorf("message %d came after %d", md.Sequence.Stream, g.last)
	}
	g.seq = m.metadata.Sequence.Consumer
	return g.hand(m)
}

// insert hands over a message that no consumer delivered: the next one after the last, when
// none is under way.
func (g *orderFilter) insert(m message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || m.metadata.Sequence.Stream <= g.last {
		return nil
	}
	return g.hand(m)
}

func (g *orderFilter) hand(m message) error {
	g.last = m.metadata.Sequence.Stream
	err := g.fn(m, m.metadata)
	g.closed = err != nil
	return err
}

// close waits for fn and lets nothing pass any more.
func (g *orderFilter) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// idle reports whether nothing has passed since its last call.
func (g *orderFilter) idle() bool {
	if !g.mu.TryLock() {
		return false // fn is running
	}
	defer g.mu.Unlock()
	was := g.idleAt
	g.idleAt = g.last
	return was == g.last
}

// delivered is the newest consumer, and how many of its messages have passed.
func (g *orderFilter) delivered() (consumer string, seq uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.consumer, g.seq
}
