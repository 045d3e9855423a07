package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/retry"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/stored"
)

// idleEvery is how often a partition looks for sessions that have been idle for
// long: what is then cleared must be cleared before the next call, not at once.
const idleEvery = time.Minute

// idleBatch is how many stored sessions one look reads, so that it costs the same in a
// partition of any size: 30,000 sessions an hour.
const idleBatch = 500

// watchIdle writes a session.idle for each session that its policy calls idle, until ctx
// ends. The event is what clears; this only records that time passed. Each look is at all
// sessions in memory and the next ones of the file: those that left memory, or were not
// loaded since the partition was acquired.
func (p *Partition) watchIdle(ctx context.Context) {
	var after events.Address
	retry.Tick(ctx, idleEvery, func() {
		now := time.Now().UnixMilli()
		due := p.ledgers.idle(now)
		stored, last, err := p.file.idle(after, now, p.ledgers.inMemory)
		if after = last; err != nil && ctx.Err() == nil {
			p.retrying("look for idle sessions")(err)
		}
		for _, s := range append(due, stored...) {
			if err := p.publishIdle(ctx, s); err != nil && ctx.Err() == nil {
				p.retrying("publish idle session")(err)
			}
		}
	})
}

// idle lists the stored sessions that are due, of at most idleBatch behind an address, and
// returns the last one it read; the zero address begins again. It loads none into memory. A
// turn may come while it reads: then its event reports an older turn, and changes nothing.
func (f *file) idle(after events.Address, now int64, inMemory func(events.Address) bool) (due []idleSession, last events.Address, err error) {
	if f.store == nil {
		return nil, last, nil
	}
	found, err := f.store.After(after, idleBatch)
	if err != nil {
		return nil, last, fmt.Errorf("list stored sessions: %w", err)
	}
	for _, a := range found {
		if inMemory(a) {
			continue
		}
		s, err := f.idleSession(a, now)
		if err != nil {
			return due, a, fmt.Errorf("read stored session: %w", err)
		}
		if s != nil {
			due = append(due, *s)
		}
	}
	if len(found) == idleBatch {
		last = found[idleBatch-1]
	}
	return due, last, nil
}

// idleSession returns a stored session that is due, nil for one that is not.
func (f *file) idleSession(a events.Address, now int64) (*idleSession, error) {
	rows, err := f.store.Load(a)
	if err != nil || rows == nil {
		return nil, err
	}
	if handled, err := stored.IdleHandled(rows); err != nil || handled {
		return nil, err
	}
	l, err := stored.ReadLedger(a, rows)
	if err != nil || !l.Idle(now, f.set.Compaction()) {
		return nil, err
	}
	return &idleSession{a, l.LastTurnSeq()}, nil
}

// idleSession is a session of which nothing was received since a sequence of the log.
type idleSession struct {
	events.Address
	since compaction.Seq
}

// idle lists the sessions that are due.
func (l *ledgers) idle(now int64) (out []idleSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a, k := range l.decider.Cache {
		if k.Ledger != nil && k.Ledger.Idle(now, l.decider.Config) {
			out = append(out, idleSession{a, k.Ledger.LastTurnSeq()})
		}
	}
	return out
}

// inMemory reports whether the ledger of a session is in memory.
func (l *ledgers) inMemory(a events.Address) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decider.Cache[a] != nil
}

// publishIdle publishes the event. Its id follows from the last turn, so that another
// look, or another worker, stores it once.
func (p *Partition) publishIdle(ctx context.Context, s idleSession) error {
	id := fmt.Sprintf("idle-%s-%d", s.Address, s.since)
	idle := events.Idle{Header: events.Header{V: events.Version, ID: id}, Since: uint64(s.since)}
	return p.publish(ctx, "publish idle", events.KindIdle, s.Address, idle, nats.Header{nats.MsgIdHdr: {id}})
}
