package replay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/retry"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// decideTimeout bounds the wait for the workers to decide on what was published,
// deliverTimeout the wait for what is stored to be delivered.
const (
	decideTimeout  = 2 * time.Minute
	deliverTimeout = 5 * time.Second
)

// tracker records when turns were sent and when their outcomes were delivered.
type tracker struct {
	mu       sync.Mutex           // guards the fields below
	sent     map[uint64]time.Time // by sequence of the turn
	received map[string]time.Time // by id of the outcome
	last     uint64               // sequence of the last turn
}

func newTracker() *tracker {
	return &tracker{sent: map[uint64]time.Time{}, received: map[string]time.Time{}}
}

// subscribe has handle called with the outcomes of all sessions of the tenants, without
// a limit of pending ones.
func subscribe(nc *nats.Conn, tenants []string, kinds []events.Kind, handle nats.MsgHandler) (stop func(), err error) {
	var subs []*nats.Subscription
	stop = func() {
		for _, s := range subs {
			_ = s.Unsubscribe() // the connection may be gone
		}
	}
	for _, tenant := range tenants {
		for _, k := range kinds {
			s, err := nc.Subscribe(events.Published(k, events.Address{Tenant: tenant, Session: "*"}), handle)
			if err != nil {
				return stop, err
			}
			subs = append(subs, s)
			if err := s.SetPendingLimits(-1, -1); err != nil {
				return stop, err
			}
		}
	}
	return stop, nil
}

func (t *tracker) turn(seq uint64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent[seq], t.last = at, max(t.last, seq)
}

func (t *tracker) outcome(id string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.received[id] = at
}

// decided waits until the workers have decided on the last turn.
func (t *tracker) decided(ctx context.Context, js jetstream.JetStream, table partitions.Table) error {
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	if err := commit.AwaitCursor(ctx, js, table, t.last); err != nil {
		return fmt.Errorf("wait for the workers: %w; is one running?", err)
	}
	return nil
}

// delivered waits until the stored outcomes are delivered, deliverTimeout at most. causes has the
// sequence of the cause by the id of the outcome. A cause that is no turn, as that of a summary, gives
// no latency.
func (t *tracker) delivered(ctx context.Context, causes map[string]uint64) (latencies []time.Duration, undelivered int) {
	ctx, cancel := context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	_ = retry.Every(10*time.Millisecond).Until(ctx, func() (bool, error) { // missing ones are counted then
		latencies, undelivered = t.compare(causes)
		return undelivered == 0, nil
	})
	slices.Sort(latencies)
	return latencies, undelivered
}

func (t *tracker) compare(causes map[string]uint64) (latencies []time.Duration, undelivered int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, seq := range causes {
		began, turn := t.sent[seq]
		at, ok := t.received[id]
		switch {
		case !ok:
			undelivered++
		case turn:
			latencies = append(latencies, at.Sub(began))
		}
	}
	return latencies, undelivered
}

// quantile is the value that p of a hundred are below, in milliseconds; 0 of none. The
// values are sorted.
func quantile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(len(sorted)*p/100, len(sorted)-1)].Microseconds()) / 1000
}
