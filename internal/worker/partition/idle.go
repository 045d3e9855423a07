package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// idleEvery is how often a partition looks for sessions that have been idle for
// long: what is then cleared must be cleared before the next call, not at once.
const idleEvery = time.Minute

// watchIdle writes a session.idle for each session in memory that its policy calls
// idle, until ctx ends. The event is what clears; this only records that time passed.
func (p *Partition) watchIdle(ctx context.Context) {
	every(ctx, idleEvery, func() {
		for _, s := range p.ledgers.idle(time.Now().UnixMilli()) {
			if err := p.publishIdle(ctx, s); err != nil && ctx.Err() == nil {
				p.retrying("publish idle session")(err)
			}
		}
	})
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

// publishIdle publishes the event. Its id follows from the last turn, so that another
// look, or another worker, stores it once.
func (p *Partition) publishIdle(ctx context.Context, s idleSession) error {
	subject, err := events.Input(events.KindIdle, s.Address)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("idle-%s-%d", s.Address, s.since)
	data, err := events.Marshal(events.Idle{Header: events.Header{V: events.Version, ID: id}, Since: uint64(s.since)})
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{nats.MsgIdHdr: {id}}}
	taken, err := stream.PublishOnce(ctx, p.set.js, m, events.Logged(p.ID, events.KindIdle, s.Address))
	if taken != nil {
		p.retrying("publish idle")(taken)
	}
	return err
}
