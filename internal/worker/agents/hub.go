package agents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/singleflight"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
)

// hub reads which outcomes are committed, without their payloads, in the order of OUTCOMES,
// and wakes the followers of their sessions.
type hub struct {
	js      jetstream.JetStream
	limiter *limit.Limiter
	onError func(error)
	payload singleflight.Group // by sequence: followers of one session read an outcome once

	mu        sync.Mutex // guards the fields below
	at        uint64     // every outcome up to here is with its followers
	running   bool       // false: no follower is let in
	followers map[events.Address]map[*follower]struct{}
}

func newHub(js jetstream.JetStream, l *limit.Limiter, onError func(error)) *hub {
	return &hub{js: js, limiter: l, onError: onError, followers: map[events.Address]map[*follower]struct{}{}}
}

// run reads until ctx ends, and begins again when the stream was replaced or truncated. No
// follower outlasts that, or the end.
func (h *hub) run(ctx context.Context) {
	defer h.cutAll()
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
		h.cutAll() // first: none may wait for what the next reader does not bring
		r.Stop()
	}
}

// open begins to read at the end of the stream.
func (h *hub) open(ctx context.Context) (*stream.Reader, error) {
	state, err := topology.State(ctx, h.js, topology.OutcomesStream)
	if err != nil {
		return nil, err
	}
	r, err := stream.OpenReader(ctx, h.js, topology.OutcomesStream, jetstream.ConsumerConfig{
		FilterSubject: events.OutcomesFilter, HeadersOnly: true,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: state.Last + 1,
	})
	if err != nil {
		return nil, err
	}
	r.Handle(func(m jetstream.Msg, md *jetstream.MsgMetadata) error {
		h.receive(m.Subject(), md.Sequence.Stream, stream.Outcome(m.Subject(), m.Headers()))
		return nil
	})
	h.mu.Lock()
	h.at, h.running = state.Last, true
	h.mu.Unlock()
	r.Start()
	return r, nil
}

// truncated reports whether the stream ends before what was read of it: it was replaced, or
// was truncated by a power loss. The reader would wait for what comes after that.
func (h *hub) truncated(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	h.mu.Lock()
	at := h.at
	h.mu.Unlock()
	state, err := topology.State(limited, h.js, topology.OutcomesStream)
	return err == nil && state.Last < at
}

// receive queues an outcome for the followers of its session, if a worker committed it.
func (h *hub) receive(subject string, seq uint64, ours bool) {
	at, err := events.ParseOutcome(subject)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = seq
	if err != nil || !ours || !followed(at.Kind) {
		return
	}
	h.give(at.Address, seq, false)
	for _, a := range above(at.Address) {
		h.give(a, seq, true)
	}
}

// give queues an outcome for the followers of a session, or for those that receive the ones of
// branches. The caller holds mu.
func (h *hub) give(a events.Address, seq uint64, ofBranch bool) {
	for f := range h.followers[a] {
		if ofBranch && !f.branches {
			continue
		}
		f.queue = append(f.queue, seq)
		if len(f.queue) > maxQueue { // it reads more slowly than outcomes come
			h.drop(f)
			continue
		}
		f.wake()
	}
}

// followed reports whether agents receive a kind, as over NATS.
func followed(k events.Kind) bool { return k != events.KindErased }

// joinTime is how long a follower waits until outcomes are read, and joinPause how long between
// two tries.
const (
	joinTime  = 5 * time.Second
	joinPause = 20 * time.Millisecond
)

var errNotRead = refusal(events.CodeUnavailable, "the stream of outcomes is not read yet", "Try again in a moment.")

var errTooMany = refusal(events.CodeRateLimited, "too many connections receive events", "End one, and try again.")

// join adds a follower once outcomes are read: at a start, and after the stream was replaced,
// that takes a moment.
func (h *hub) join(ctx context.Context, f *follower) (at uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	_ = retry.Every(joinPause).Do(ctx, nil, func() error { // err has more
		at, err = h.add(f)
		return retry.When(errors.Is(err, errNotRead), err)
	})
	return at, err
}

// add registers a follower: it gets every outcome after the returned sequence.
func (h *hub) add(f *follower) (at uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.running {
		return 0, errNotRead
	}
	var ok bool
	if f.release, ok = h.limiter.TryHold(limit.Streams, limit.Account{Tenant: f.at.Tenant}, 1); !ok {
		return 0, errTooMany
	}
	if h.followers[f.at] == nil {
		h.followers[f.at] = map[*follower]struct{}{}
	}
	h.followers[f.at][f] = struct{}{}
	return h.at, nil
}

// drop ends a follower. The caller holds mu.
func (h *hub) drop(f *follower) {
	of := h.followers[f.at]
	if _, ok := of[f]; !ok {
		return
	}
	if delete(of, f); len(of) == 0 {
		delete(h.followers, f.at)
	}
	f.release()
	if f.conn != nil {
		_ = f.conn.Close()
	}
}

// cut ends a follower.
func (h *hub) cut(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(f)
}

// cutAll ends all followers, and lets none in.
func (h *hub) cutAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = false
	h.each(h.drop)
}

// revoke ends the followers whose tokens are no more, or may not receive events any more.
func (h *hub) revoke(now *tokenSet) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(func(f *follower) {
		t := now.byHash[f.token.Hash]
		if t == nil || t.Role == tokens.RoleSession || !t.MayUse(f.at.Tenant) {
			h.drop(f)
			return
		}
		f.token = t
	})
}

// heartbeat lets a part of the idle followers show that they live, and ends all whose tokens
// have expired.
func (h *hub) heartbeat(part int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.each(func(f *follower) {
		switch {
		case !f.token.Valid(now):
			h.drop(f)
		case f.part != part:
		default:
			f.due = true
			f.wake()
		}
	})
}

// each calls fn for all followers; fn may drop them. The caller holds mu.
func (h *hub) each(fn func(*follower)) {
	for _, of := range h.followers {
		for f := range of {
			fn(f)
		}
	}
}

// read returns an outcome: from the leader, as it is committed.
func (h *hub) read(ctx context.Context, seq uint64) (*jsapi.StoredMsg, error) {
	v, err, _ := h.payload.Do(fmt.Sprint(seq), func() (any, error) {
		return jsapi.GetFromLeader(ctx, h.js.Conn(), topology.OutcomesStream, jsapi.GetRequest{Seq: seq, NoHeader: true})
	})
	if err != nil {
		return nil, err
	}
	m, ok := v.(*jsapi.StoredMsg)
	if !ok {
		return nil, errors.New("read outcome: no message")
	}
	return m, nil
}

// parts numbers the followers for their heartbeats.
var parts atomic.Uint32
