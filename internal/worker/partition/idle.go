package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/retry"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/stored"
)

// idleEvery is the interval at which a partition looks for idle sessions. It may be long: old
// content must be cleared before the next call, not at once.
const idleEvery = time.Minute

// idleBatch is the number of stored sessions that one look reads. So a look costs the same in a
// partition of any size: 30,000 sessions an hour.
const idleBatch = 500

// watchIdle publishes a session.idle for each session that is idle under its policy, until ctx
// ends. It clears nothing: the decision on the event does. Each look covers all sessions in
// memory and the next idleBatch of the file. Erasure after limits.idle_days is in retention.go.
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

// idle lists the due sessions among the next idleBatch stored ones after an address. It returns the
// last address that it read, or the zero address at the end of the file. It loads no ledger into
// memory. If a turn arrives during the read, the event reports an older turn and changes nothing.
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

// idleSession returns a stored session if it is due, else nil.
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

// idleSession is a session without a turn since a sequence of the log.
type idleSession struct {
	events.Address
	since measure.Seq
}

// idle lists the sessions that are due.
func (l *ledgers) idle(now int64) (out []idleSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	config := l.set.Compaction() // not the decider's, which is that of the last event
	for a, k := range l.decider.Cache {
		if k.Ledger != nil && k.Ledger.Idle(now, config) {
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

// publishIdle publishes the event. Its id contains the last turn, so a second look or another
// worker does not store it twice.
func (p *Partition) publishIdle(ctx context.Context, s idleSession) error {
	id := fmt.Sprintf("idle-%s-%d", s.Address, s.since)
	idle := events.Idle{Header: events.Header{V: events.Version, ID: id}, Since: uint64(s.since)}
	return p.publish(ctx, "publish idle", events.KindIdle, s.Address, idle, nats.Header{nats.MsgIdHdr: {id}})
}
