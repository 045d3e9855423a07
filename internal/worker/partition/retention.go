package partition

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

// Log and outcomes keep a message for their age. What has to outlive it, the newest
// marker of a partition and the config in force, is written again in time; ledgers of
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
	tick := time.NewTicker(set.renewEvery())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c := set.config.Compaction
		if err := commit.PutConfig(ctx, set.js, c.Hash(), c.Text(), set.renewEvery()/2); err != nil && ctx.Err() == nil {
			observe.Call(set.config.Listener.Retrying, observe.Retrying{Partition: -1, Step: "renew config", Err: err})
		}
	}
}

// sweep drops the ledgers of sessions that have expired, in memory and in the file.
// The clock of the worker may be ahead of the server's by a tenth of the age, and the
// partition may be behind: nothing is dropped that an event could still find.
func (p *Partition) sweep(ctx context.Context, now time.Time) error {
	at, err := p.oldestUndecided(ctx, now.Add(-p.set.config.Streams.MaxAge/10))
	if err != nil {
		return err
	}
	gone, err := p.expiredInFile(at)
	if err != nil {
		return fmt.Errorf("find expired sessions: %w", err)
	}
	p.state.Lock()
	defer p.state.Unlock()
	for a, k := range p.decider.Cache {
		if k.Ledger != nil && k.Ledger.Expired(at, p.decider.Config) {
			p.decider.Reset(a)
		}
	}
	for _, a := range gone {
		l, err := p.decider.Ledger(a) // it may have sent events since
		if err != nil {
			return err
		}
		if l.Expired(at, p.decider.Config) {
			p.decider.Reset(a)
		}
	}
	return nil
}

// oldestUndecided is the time of the oldest event that is not decided, or an earlier one, in
// Unix milliseconds.
func (p *Partition) oldestUndecided(ctx context.Context, at time.Time) (int64, error) {
	p.state.Lock()
	decided := uint64(p.decided.seq)
	p.state.Unlock()
	oldest, err := stream.Oldest(ctx, p.set.js, p.ID, decided)
	if err == nil && !oldest.IsZero() && oldest.Before(at) {
		at = oldest
	}
	return at.UnixMilli(), err
}

// expiredInFile lists the ledgers of the file that have expired.
func (p *Partition) expiredInFile(at int64) (gone []events.Address, err error) {
	if p.store == nil {
		return nil, nil
	}
	err = p.store.Each(func(a events.Address, rows []compaction.Row) error {
		spoke, err := compaction.LastTurnAt(rows)
		if err == nil && p.set.config.Compaction.Expired(spoke, at) {
			gone = append(gone, a)
		}
		return err
	})
	return gone, err
}
