package stream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/memory"
)

const (
	// pullMessages is the number of messages requested at once. Fewer cost throughput (256: × 0.62).
	pullMessages = 2000
	// pullTime is the time after which the server ends a pull without further messages.
	pullTime = 30 * time.Second
	// maxRefusals limits the pulls in a row that end because the next message exceeds their
	// remaining bytes. Other messages may have used up single pulls; among so many some were
	// new, so the message fits into no pull.
	maxRefusals = 8
)

// pullBytes limits the bytes of one pull. They must exceed the server's largest message, or the
// reader would stop before it. They should be few: the server cuts off a connection with more than
// max_pending (64 MiB) in flight, again after each reconnect. 4 MiB hold 2,000 turns of the
// usual 1.5 KiB.
func pullBytes(nc *nats.Conn) int { return max(4<<20, connect.MaxPayload(nc)) + 256<<10 }

// errTooLarge: a message exceeds the bytes of a pull. It was stored when the server's limit
// was higher.
var errTooLarge = errors.New("the next message is larger than what the server takes now")

// puller requests messages from one consumer continuously.
//
// Consume of nats.go takes a message without payload and with a header Status for a control
// message of the server. Any publisher may store such a message: nats.go would miss it
// each time, and the reader would begin again before it without end. So the reader pulls itself.
type puller struct {
	nc    *nats.Conn
	next  string                // subject of pull requests
	pass  func(*nats.Msg) error // takes delivered messages, one at a time, in order
	lose  func(error)           // receives the error that ends the pulling
	bytes int

	inbox string
	sub   *nats.Subscription
	over  atomic.Bool
	idle  *time.Timer // fires after two heartbeats without a message of the server

	// Owned by the subscription once it exists.
	open     int // messages requested and not yet delivered
	refusals int // pulls since the last message that were too small for the next one
}

func (p *puller) start() error {
	p.inbox, p.open = p.nc.NewInbox(), pullMessages
	p.idle = time.AfterFunc(2*Heartbeat, func() {
		if p.nc.IsConnected() { // the reader has a listener for a lost link
			p.end(jetstream.ErrNoHeartbeat)
		}
	})
	var err error
	if p.sub, err = p.nc.Subscribe(p.inbox, p.receive); err == nil {
		err = errors.Join(p.sub.SetPendingLimits(-1, -1), p.request(pullMessages)) // the pulls limit them
	}
	if err != nil {
		p.stop()
	}
	return err
}

// stop ends the pulling. It does not wait for pass.
func (p *puller) stop() {
	p.over.Store(true)
	p.idle.Stop()
	if p.sub != nil {
		_ = p.sub.Unsubscribe()
	}
}

func (p *puller) end(err error) {
	if !p.over.Swap(true) {
		p.lose(err)
	}
}

func (p *puller) request(messages int) error {
	memory.Relieve()
	return p.nc.PublishRequest(p.next, p.inbox, fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d,"idle_heartbeat":%d}`, messages, p.bytes, pullTime, Heartbeat))
}

// receive handles the messages of the inbox, in order, and requests more in time.
func (p *puller) receive(m *nats.Msg) {
	if p.over.Load() {
		return
	}
	p.idle.Stop() // a slow pass must not count as an idle server
	var err error
	if isDelivery(m) {
		p.open, p.refusals = p.open-1, 0
		err = p.pass(m)
	} else {
		err = p.control(m)
	}
	if err == nil && p.open < pullMessages/2 {
		err = p.request(pullMessages - p.open)
		p.open = pullMessages
	}
	if err != nil {
		p.end(err)
	}
	if !p.over.Load() {
		p.idle.Reset(2 * Heartbeat)
	}
}

// control handles a control message of the server. An error ends the pulling.
func (p *puller) control(m *nats.Msg) error {
	status := m.Header.Get(headerStatus)
	text := m.Header.Get(headerDescription)
	lower := strings.ToLower(text)
	switch {
	case status == statusHeartbeat:
		return nil
	case status == statusConflict && strings.Contains(lower, "exceeds maxbytes"):
		if p.refusals++; p.refusals > maxRefusals {
			return errTooLarge
		}
	case status == statusTimeout, status == statusNoMessages, status == statusConflict && strings.Contains(lower, "batch completed"):
	case status == statusNoResponders:
		return nats.ErrNoResponders
	case status == statusBadRequest:
		return jetstream.ErrBadRequest
	case strings.Contains(lower, "consumer deleted"):
		return jetstream.ErrConsumerDeleted
	case strings.Contains(lower, "leadership change"):
		return jetstream.ErrConsumerLeadershipChanged
	case strings.Contains(lower, "server shutdown"):
		return jetstream.ErrServerShutdown
	default:
		return fmt.Errorf("the server ends a pull: %s %s", status, text)
	}
	left, _ := strconv.Atoi(m.Header.Get(headerPending)) // of this pull
	p.open = max(0, p.open-left)
	return nil
}
