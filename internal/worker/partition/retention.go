package partition

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/stored"
)

// Log and outcomes keep a message for their age. The messages that have to outlive it, the newest
// marker of a partition and the config in force, are written again in time; ledgers of
// which nothing is left are dropped.

// renewalsPerAge is how often what has to outlive the age is written again.
const renewalsPerAge = 100

// renewEvery is the time between two renewals; nothing leaves streams without an age.
func (set *Set) renewEvery() time.Duration {
	return cmp.Or(set.config.Streams.MaxAge/renewalsPerAge, math.MaxInt64)
}

// renewConfig puts the text of the config in force again, until ctx ends. Workers
// with the same config do it once between them.
func (set *Set) renewConfig(ctx context.Context) {
	every(ctx, set.renewEvery(), func() {
		if err := set.putConfig(ctx, set.Compaction(), set.renewEvery()/2); err != nil && ctx.Err() == nil {
			scope{-1, set}.retrying("renew config")(err)
		}
	})
}

// every calls do at each tick until ctx ends.
func every(ctx context.Context, d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// sweep drops the ledgers of sessions that have expired, in memory and in the file.
// The clock of the worker may be ahead of the server's by a tenth of the age, and the
// partition may be behind: nothing is dropped that an event could still find.
func (e *eraser) sweep(ctx context.Context, now time.Time) error {
	at := now.Add(-e.set.config.Streams.MaxAge / 10)
	undecided, err := stream.Oldest(ctx, e.set.js, e.ID, uint64(e.ledgers.position().seq))
	if err != nil {
		return err
	}
	if !undecided.IsZero() && undecided.Before(at) {
		at = undecided
	}
	expired, err := e.file.expired(at.UnixMilli())
	if err != nil {
		return fmt.Errorf("find expired sessions: %w", err)
	}
	return e.ledgers.expire(at.UnixMilli(), expired)
}

// expired lists the ledgers of the file that have expired.
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

// expire drops the ledgers that have expired, of those in memory and those stored.
func (l *ledgers) expire(at int64, stored []events.Address) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a, k := range l.decider.Cache {
		if k.Ledger != nil && k.Ledger.Expired(at, l.decider.Config) {
			l.decider.Reset(a)
		}
	}
	for _, a := range stored {
		found, err := l.decider.Ledger(a) // it may have sent events since
		if err != nil {
			return err
		}
		if found.Expired(at, l.decider.Config) {
			l.decider.Reset(a)
		}
	}
	return nil
}
