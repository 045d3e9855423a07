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
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range p.idleSessions(time.Now().UnixMilli()) {
			if err := p.publishIdle(ctx, s); err != nil && ctx.Err() == nil {
				p.retrying("publish idle session")(err)
			}
		}
	}
}

// idleSession is a session of which nothing was received since a sequence of the log.
type idleSession struct {
	events.Address
	since compaction.Seq
}

// idleSessions lists the sessions that are due.
func (p *Partition) idleSessions(now int64) []idleSession {
	p.state.Lock()
	defer p.state.Unlock()
	var out []idleSession
	for a, k := range p.decider.Cache {
		if k.Ledger != nil && k.Ledger.Idle(now, p.decider.Config) {
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
