package agents

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
)

// Hub reads the headers of new messages of OUTCOMES in order, and wakes the followers of agents and
// of operators. One reader serves all followers; it begins with the first one.
type Hub struct {
	js      jetstream.JetStream
	limiter *limit.Limiter
	wanted  chan struct{} // one slot: a follower wants to join

	mu        sync.Mutex                                // guards the fields below
	at        uint64                                    // all outcomes up to it are queued for their followers
	running   bool                                      // false: no follower can join
	followers map[events.Address]map[*follower]struct{} // operators' ones under the zero address
}

// NewHub returns a hub. It reads only in Run.
func NewHub(js jetstream.JetStream, l *limit.Limiter) *Hub {
	return &Hub{js: js, limiter: l, wanted: make(chan struct{}, 1), followers: map[events.Address]map[*follower]struct{}{}}
}

// Run reads until ctx ends. If the stream was replaced or truncated, it drops all followers and begins
// again. At its end it drops all followers too.
func (h *Hub) Run(ctx context.Context) {
	defer h.cutAll()
	select {
	case <-ctx.Done():
	case <-h.wanted:
	}
	ticks := time.NewTicker(heartbeatEvery / heartbeatParts)
	defer ticks.Stop()
	for part := 0; ctx.Err() == nil; {
		var r *stream.Reader
		err := retry.Every(reloadEvery/4).Do(ctx, nil, func() (err error) {
			r, err = h.open(ctx)
			return err
		})
		if err != nil {
			return
		}
		for restart := false; !restart; {
			select {
			case <-ctx.Done():
				restart = true
			case <-ticks.C:
				h.heartbeat(part % heartbeatParts)
				part++
				restart = part%heartbeatParts == 0 && h.truncated(ctx)
			}
		}
		h.cutAll() // before the next reader, which skips outcomes that they wait for
		r.Stop()
	}
}

// open begins to read at the end of the stream.
func (h *Hub) open(ctx context.Context) (*stream.Reader, error) {
	state, err := topology.State(ctx, h.js, topology.OutcomesStream)
	if err != nil {
		return nil, err
	}
	r, err := stream.OpenReader(ctx, h.js, topology.OutcomesStream, jetstream.ConsumerConfig{
		FilterSubject: allOutcomes, HeadersOnly: true,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: state.Last + 1,
	})
	if err != nil {
		return nil, err
	}
	r.Handle(func(m jetstream.Msg, md *jetstream.MsgMetadata) error {
		h.receive(m, md)
		return nil
	})
	h.mu.Lock()
	h.at, h.running = state.Last, true
	h.mu.Unlock()
	r.Start()
	return r, nil
}

// truncated reports whether the stream ends before the last sequence read: it was replaced, or
// truncated by a power loss. The reader would wait for later sequences.
func (h *Hub) truncated(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	h.mu.Lock()
	at := h.at
	h.mu.Unlock()
	state, err := topology.State(limited, h.js, topology.OutcomesStream)
	return err == nil && state.Last < at
}

// receive queues an outcome for the followers of its session, and a signal for operators, if a worker committed it.
func (h *Hub) receive(m jetstream.Msg, md *jetstream.MsgMetadata) {
	ours, seq := stream.Outcome(m.Subject(), m.Headers()), md.Sequence.Stream
	at, err := events.ParseOutcome(m.Subject())
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at = seq; !ours {
		return
	}
	if operators := h.followers[events.Address{}]; len(operators) > 0 {
		if s := signalOf(m, md.Timestamp); s != nil {
			e := &event{seq: seq, line: s.line(seq)}
			for f := range operators {
				if f.wants(s) {
					h.queue(f, e)
				}
			}
		}
	}
	if err != nil || !followed(at.Kind) {
		return
	}
	e := &event{seq: seq, at: at, size: stream.SizeOf(m)}
	h.give(at.Address, e, false)
	for _, a := range above(at.Address) {
		h.give(a, e, true)
	}
}

// give queues an outcome for the followers of a session; with ofBranch only for those that also receive
// outcomes of branches. The caller holds mu.
func (h *Hub) give(a events.Address, e *event, ofBranch bool) {
	for f := range h.followers[a] {
		if ofBranch && !f.branches {
			continue
		}
		h.queue(f, e)
	}
}

// queue queues an event for a follower. The caller holds mu.
func (h *Hub) queue(f *follower, e *event) {
	most := maxQueue
	if f.operator {
		most = maxSignals
	}
	if f.queue = append(f.queue, e); len(f.queue) > most { // the reader is too slow
		h.drop(f)
		return
	}
	f.wake()
}

// followed reports whether agents receive a kind, as over NATS.
func followed(k events.Kind) bool { return k != events.KindErased && k != events.KindJob }

// joinTime limits the wait of a follower for the hub to read, joinPause is the pause between two
// attempts.
const (
	joinTime  = 5 * time.Second
	joinPause = 20 * time.Millisecond
)

var errNotRead = events.Refuse(events.CodeUnavailable, "the stream of outcomes is not read yet", "Try again in a moment.")

var errTooMany = events.Refuse(events.CodeRateLimited, "too many connections receive events", "End one, and try again.")

// join adds a follower, if its token is among those of current; an operator's follower has none, and current is nil. It
// waits until the hub reads outcomes, which takes a moment after a start or a replacement of the stream.
func (h *Hub) join(ctx context.Context, f *follower, current func() *tokens.Set) (at uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	retry.Wake(h.wanted)
	_ = retry.Every(joinPause).Do(ctx, nil, func() error { // err has the result
		at, err = h.add(f, current)
		return retry.When(errors.Is(err, errNotRead), err)
	})
	return at, err
}

// add registers a follower: it gets every outcome after the returned sequence. A token that is revoked later ends
// it; one that was revoked since the request began is refused here, since current is called under mu.
func (h *Hub) add(f *follower, current func() *tokens.Set) (at uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running {
		return 0, errNotRead
	}
	if current != nil && !f.renew(*current()) {
		return 0, errNoToken
	}
	var ok bool
	if f.release, ok = h.limiter.TryHold(limit.Streams, limit.Account{Tenant: f.tenant()}, 1); !ok {
		return 0, errTooMany
	}
	if h.followers[f.key()] == nil {
		h.followers[f.key()] = map[*follower]struct{}{}
	}
	h.followers[f.key()][f] = struct{}{}
	return h.at, nil
}

// drop ends a follower. The caller holds mu.
func (h *Hub) drop(f *follower) {
	of := h.followers[f.key()]
	if _, ok := of[f]; !ok {
		return
	}
	if delete(of, f); len(of) == 0 {
		delete(h.followers, f.key())
	}
	f.release()
	if f.conn != nil {
		go func() { _ = f.conn.Close() }() // TLS writes an alert, for which a slow reader makes it wait
	}
}

// cut ends a follower.
func (h *Hub) cut(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(f)
}

// cutAll ends all followers, and refuses new ones.
func (h *Hub) cutAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = false
	h.each(h.drop)
}

// cutAgents ends the followers of agents.
func (h *Hub) cutAgents() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(func(f *follower) {
		if !f.operator {
			h.drop(f)
		}
	})
}

// revoke ends the followers whose tokens were removed, or may no longer receive events.
func (h *Hub) revoke(current tokens.Set) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(func(f *follower) {
		if !f.operator && !f.renew(current) {
			h.drop(f)
		}
	})
}

// renew gives a follower the current entry of its token. It returns false if the token was removed, or may no longer
// receive the events. The caller holds the mutex of the hub.
func (f *follower) renew(current tokens.Set) bool {
	t := current[f.token.Hash]
	if t == nil || t.Role == tokens.RoleSession || !t.MayUse(f.at.Tenant) {
		return false
	}
	f.token = t
	return true
}

// heartbeat sends a heartbeat to one group of the followers, and ends all followers whose tokens have
// expired.
func (h *Hub) heartbeat(part int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.each(func(f *follower) {
		switch {
		case f.token != nil && !f.token.Valid(now):
			h.drop(f)
		case f.part != part:
		default:
			f.due = true
			f.wake()
		}
	})
}

// each calls fn for all followers; fn may drop them. The caller holds mu.
func (h *Hub) each(fn func(*follower)) {
	for _, of := range h.followers {
		for f := range of {
			fn(f)
		}
	}
}

// parts assigns followers to groups for their heartbeats.
var parts atomic.Uint32
