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
	// pullMessages is how many are requested at once. Fewer cost throughput (256: × 0.62).
	pullMessages = 2000
	// pullTime is when the server gives up a pull that it has nothing more for.
	pullTime = 30 * time.Second
	// maxRefusals is how many pulls in a row may end since the next message is larger than
	// what is left of their bytes. Pulls may be nearly used up by other messages; of so
	// many some were new, and the message fits into none.
	maxRefusals = 8
)

// pullBytes bounds what one pull brings. The bytes must exceed the largest message the
// server takes, or the reader stalls before it; and they should be few, as a connection
// with more than max_pending (64 MiB) under way is cut off, and would be so again after
// each reconnect. 4 MiB hold 2,000 turns of the usual 1.5 KiB.
func pullBytes(nc *nats.Conn) int { return max(4<<20, connect.MaxPayload(nc)) + 256<<10 }

// errTooLarge: a message exceeds what a pull requests. It was stored when the
// server took larger ones.
var errTooLarge = errors.New("the next message is larger than what the server takes now")

// puller requests messages from one consumer, again and again.
//
// Consume of nats.go takes a message without payload and with a header Status for one of
// the server's own. Any publisher may store such a message: it was then missed each
// time, and the reading began again before it without end. So the reader pulls by itself.
type puller struct {
	nc    *nats.Conn
	next  string                // where pulls are requested
	pass  func(*nats.Msg) error // takes what was delivered, one at a time, in order
	lose  func(error)           // receives why no more is to be expected; may be called more than once
	bytes int

	inbox string
	sub   *nats.Subscription
	over  atomic.Bool
	idle  *time.Timer // fires when the server has sent nothing for two heartbeats

	// Owned by the subscription once it exists.
	open     int // messages that were requested, and not delivered
	refusals int // pulls since the last message that ended as it was too large
}

// start requests the first messages.
func (p *puller) start() error {
	p.inbox, p.open = p.nc.NewInbox(), pullMessages
	p.idle = time.AfterFunc(2*Heartbeat, func() {
		if p.nc.IsConnected() { // the end of a lost link has listeners of its own
			p.end(jetstream.ErrNoHeartbeat)
		}
	})
	var err error
	if p.sub, err = p.nc.Subscribe(p.inbox, p.receive); err == nil {
		err = errors.Join(p.sub.SetPendingLimits(-1, -1), p.request(pullMessages)) // the pulls bound it
	}
	if err != nil {
		p.stop()
	}
	return err
}

// stop returns at once. pass may still run.
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

// receive takes what comes in on the inbox, in order, and requests more in time.
func (p *puller) receive(m *nats.Msg) {
	if p.over.Load() {
		return
	}
	p.idle.Stop() // a slow pass is no idle server
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

// control handles what the server sends beside the messages; an error ends the pulling.
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
