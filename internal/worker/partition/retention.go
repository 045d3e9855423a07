package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/erase"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/stored"
)

// The streams remove messages of their maximum age. The newest marker of a partition and the config
// in force have to outlive it, so they are published again in time. Expired ledgers are dropped,
// and sessions past limits.idle_days of their tenant erased.

// renewalsPerAge is the number of renewals within the maximum age.
const renewalsPerAge = 100

// lastRenewal is the age of the text of a config that goes out of force, above which it is stored again. The workers
// of a fleet, which change their config at the same time, share the text.
const lastRenewal = time.Minute

// renewEvery returns the time between two renewals. Streams without a maximum age need none.
func (set *Set) renewEvery() time.Duration {
	return cmp.Or(set.config.Streams.MaxAge/renewalsPerAge, math.MaxInt64)
}

const (
	// maxSweepPause limits the time between two sweeps: limits.idle_days is in days, whatever the age of the streams.
	maxSweepPause = 6 * time.Hour
	// sweepSoon is the time from the opening of a partition to its first sweep, so that a partition which changes its
	// owner more often than every sweepEvery is swept too. A sweep reads the whole file.
	sweepSoon = 5 * time.Minute
)

// sweepEvery returns the time between two sweeps.
func (set *Set) sweepEvery() time.Duration { return min(set.renewEvery(), maxSweepPause) }

// renewConfig publishes the text of the config in force again, until ctx ends. Workers
// with the same config share the renewals.
func (set *Set) renewConfig(ctx context.Context) {
	retry.Tick(ctx, set.renewEvery(), func() {
		if err := set.putConfig(ctx, set.Compaction(), set.renewEvery()/2); err != nil && ctx.Err() == nil {
			scope{-1, set}.retrying("renew config")(err)
		}
	})
}

// sweep drops the ledgers of sessions that have expired, in memory and in the file, and requests the erasure of
// sessions idle for limits.idle_days.
// The clock of the worker may be ahead of the server's by a tenth of the age, and the
// partition may be behind: nothing is dropped that an event could still find.
func (e *eraser) sweep(ctx context.Context, now time.Time) error {
	at := now.Add(-e.set.config.Streams.MaxAge / 10)
	decided := uint64(e.ledgers.position().seq)
	undecided, err := stream.Waiting(ctx, e.set.js, e.sources(decided), decided)
	if err != nil {
		return err
	}
	if undecided.Seq > 0 && undecided.Time.Before(at) {
		at = undecided.Time
	}
	expired, err := e.file.expired(at.UnixMilli())
	if err != nil {
		return fmt.Errorf("find expired sessions: %w", err)
	}
	if err := e.ledgers.expire(at.UnixMilli(), expired); err != nil {
		return err
	}
	return e.requestIdleErasures(ctx, now)
}

func (f *file) expired(at int64) (gone []events.Address, err error) {
	if f.store == nil {
		return nil, nil
	}
	err = f.store.Each(func(a events.Address, rows []compaction.Row) error {
		last, err := stored.LastTurnAt(rows)
		if err == nil && f.set.Compaction().Expired(last, at) {
			gone = append(gone, a)
		}
		return err
	})
	return gone, err
}

// expire drops the expired ledgers, both in memory and among the stored ones.
func (l *ledgers) expire(at int64, stored []events.Address) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a, k := range l.decider.Cache {
		if k.Ledger != nil && k.Ledger.Expired(at, l.decider.Config) {
			l.decider.Reset(a)
		}
	}
	for _, a := range stored {
		found, err := l.decider.Ledger(a) // it may have new events
		if err != nil {
			return err
		}
		if found.Expired(at, l.decider.Config) {
			l.decider.Reset(a)
		}
	}
	return nil
}

// requestIdleErasures publishes a session.forget for each session of the partition without an event for
// limits.idle_days of its tenant. It includes ended sessions.
func (e *eraser) requestIdleErasures(ctx context.Context, now time.Time) error {
	config := e.set.Compaction()
	tenants := slices.Sorted(maps.Keys(config.Tenants))
	if config.Policy.Limits.IdleDays > 0 {
		tenants = []string{erase.Any}
	}
	for _, tenant := range tenants {
		if tenant != erase.Any && config.For(tenant).Limits.IdleDays == 0 {
			continue
		}
		var all []events.Address
		for _, p := range e.sources(uint64(e.ledgers.position().seq)) {
			found, err := erase.Sessions(ctx, e.set.js, strconv.Itoa(p), tenant)
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		for _, a := range all {
			if e.set.Of(a) != e.ID { // it moved to another partition
				continue
			}
			days := config.For(a.Tenant).Limits.IdleDays
			if days == 0 {
				continue
			}
			if err := e.requestErasure(ctx, a, now.AddDate(0, 0, -int(days))); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestErasure publishes the session.forget of a session whose last event is before a time. The server stores
// it only if no later event arrived.
func (e *eraser) requestErasure(ctx context.Context, a events.Address, before time.Time) error {
	every := events.LoggedAnywhere("*", a)
	last, err := stream.LastOf(ctx, e.set.config.Read, topology.LogStream, every)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && !last.Time.Before(before) {
		return nil
	}
	if err != nil {
		return err
	}
	id := fmt.Sprintf("retention-%s-%d", a, last.Seq)
	err = e.publish(ctx, "request erasure", events.KindForget, a, events.Header{V: events.Version, ID: id}, nats.Header{
		nats.MsgIdHdr: {id}, events.HeaderCaller: {e.caller()}, jsapi.HeaderFence: {fmt.Sprint(last.Seq)}, jsapi.HeaderFenceSubject: {every},
	})
	if jsapi.HasCode(err, jsapi.CodeWrongLastSequence, jsapi.CodeWrongLastConstant) {
		return nil // the session has a new event
	}
	return err
}
