package stream

import (
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// orderFilter passes the messages of successive consumers to fn, one at a time, in order,
// until it is closed.
type orderFilter struct {
	fn func(jetstream.Msg, *jetstream.MsgMetadata) error // set before the first message; an error closes the filter

	mu       sync.Mutex // held while fn runs
	closed   bool
	last     uint64 // stream sequence of the last message passed
	consumer string // the newest; messages of earlier consumers are dropped
	seq      uint64 // consumer sequence of the last message passed
	idleAt   uint64 // value of last at the previous call of idle
}

var errGap = errors.New("messages are missing")

// begin accepts only messages of a new consumer from now on.
func (g *orderFilter) begin(consumer string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.consumer, g.seq = consumer, 0
}

// end accepts no message until the next consumer begins. It returns the stream sequence of the last
// message passed.
func (g *orderFilter) end() (last uint64) {
	g.mu.Lock() // waits for fn, whose message counts as passed
	defer g.mu.Unlock()
	g.consumer, g.seq = "", 0
	return g.last
}

// pass passes a delivered message to fn. An error of fn closes the filter; after any other error the
// reader begins with another consumer.
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

// insert passes a message that no consumer delivered: the next one after the last. No consumer may be
// active.
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

// close waits for fn. Afterwards no message passes.
func (g *orderFilter) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// idle reports whether no message passed since its last call.
func (g *orderFilter) idle() bool {
	if !g.mu.TryLock() {
		return false // fn is running
	}
	defer g.mu.Unlock()
	was := g.idleAt
	g.idleAt = g.last
	return was == g.last
}

// delivered returns the newest consumer and the number of its messages passed.
func (g *orderFilter) delivered() (consumer string, seq uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.consumer, g.seq
}
