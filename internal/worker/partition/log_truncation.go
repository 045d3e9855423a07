package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

const (
	// catchUpTime is how long the log of a cluster may seem to end before what was
	// decided: a leader that was just elected answers before it has applied all it
	// has. Messages still missing then are lost.
	catchUpTime = 10 * time.Second
	// catchUpPoll is how often its state is read.
	catchUpPoll = 100 * time.Millisecond
)

// awaitLog reads the state of the log once it has reached the marker, or is known to have
// lost it. The single copy of a server on its own is all there is.
func (r *recovery) awaitLog(ctx context.Context) error {
	end := time.Now().Add(catchUpTime)
	return retry.Every(catchUpPoll).Until(ctx, func() (_ bool, err error) {
		r.log, err = topology.State(ctx, r.set.js, topology.LogStream)
		return r.log.Last >= r.found.Cursor || r.log.Replicas <= 1 || time.Now().After(end), err
	})
}

// eventAt returns an event of the log, nil for one that has aged away.
func (r *recovery) eventAt(ctx context.Context, seq uint64) (*stream.LogMessage, error) {
	found, err := stream.GetLog(ctx, r.set.config.Read, []uint64{seq})
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

// findTruncation returns where the log stops being the one that was decided on; truncated is
// false while it is so up to the marker.
func (r *recovery) findTruncation(ctx context.Context) (end uint64, truncated bool, err error) {
	if r.found.LastTime == 0 { // of a marker that was rolled back, or of none
		return r.log.Last, r.found.Cursor > r.log.Last, nil
	}
	if has, err := r.hasEventOf(ctx, r.found.Marker); has || err != nil {
		return 0, false, err
	}
	end, err = stream.LastUntil(ctx, r.set.js, topology.LogStream, time.UnixMilli(r.found.LastTime))
	return end, true, err
}

// hasEventOf reports whether the log is the one that a marker was committed on. A power loss takes the end of a log,
// and its sequences are issued again: to no agent yet, or to agents that came back before the worker did. Then the
// event at the marker is of a later time than the marker holds, and so are all events that took the place of others.
func (r *recovery) hasEventOf(ctx context.Context, m commit.Marker) (bool, error) {
	if m.Cursor > r.log.Last || m.LastTime == 0 {
		return m.Cursor <= r.log.Last, nil
	}
	at, err := r.eventAt(ctx, m.Cursor)
	return err == nil && (at == nil || at.Time.UnixMilli() <= m.LastTime), err // another one of that time has another hash
}

// rolledBack is a position of a log that was truncated. A partition that was split off has none before its split: up
// to there it applies what its parent decides.
func (s scope) rolledBack(from position, end uint64) position {
	if l := s.set.Table().Lineage(s.ID); len(l) > 0 {
		end = max(end, l[len(l)-1].First-1)
	}
	return position{seq: compaction.Seq(end), split: from.split}
}

// rollBackMarker moves the marker to the end of what the log still has of what was decided.
// Outcomes of the events that are gone stay published; the sequences after it
// are decided as the new events they are.
func (r *recovery) rollBackMarker(ctx context.Context, end uint64) error {
	if r.marker = r.rolledBack(r.marker, end); uint64(r.marker.seq) > r.log.Last {
		return fmt.Errorf("the log was truncated to %d, below the split at %d", end, r.marker.split.First)
	}
	at, err := r.eventAt(ctx, uint64(r.marker.seq))
	if err != nil {
		return err
	}
	if at != nil {
		r.marker.time = at.Time.UnixMilli() // should the power go again
	}
	if err := r.commits.Commit(ctx, nil, r.scope.marker(r.marker)); err != nil {
		return err
	}
	r.truncated = true
	r.retrying("open")(fmt.Errorf("log truncated: last sequence %d, outcomes committed up to %d", r.marker.seq, r.found.Cursor))
	return nil
}

// Where a log was truncated below the split of a partition, the partition decides the events up to there again, and its
// child waits for that. Both refuse requests until then: events of agents alone might not end it, since agents that
// sync have no events before they are answered.

// toFill is the split that the log of a partition has to reach again; the zero value for none.
func (l *ledgers) toFill() partitions.Split {
	l.mu.Lock()
	defer l.mu.Unlock()
	if split := l.decided.split; l.beforeSplit(split) {
		return split
	}
	return partitions.Split{}
}

// filler is an event that the owner of a partition publishes to fill the log. It changes nothing, and has no outcome: its
// session, of a name that no agent chooses, has no turn.
func (s scope) filler() (events.Address, []byte, error) {
	a := events.Address{Tenant: events.DefaultTenant, Session: "compactd-log-filler"}
	for i := 0; s.set.Of(a) != s.ID; i++ {
		a.Session = fmt.Sprintf("compactd-log-filler-%d", i)
	}
	data, err := events.Marshal(events.Branch{Header: events.Header{V: events.Version}, Branch: "none"})
	return a, data, err
}

// fillBatch is how many events are published at a time to fill a log.
const fillBatch = 1000

// fill publishes events until the log has reached the split again. The last one lets the partition reach it too.
func (p *Partition) fill(ctx context.Context) {
	split := p.toFill()
	if split.First == 0 {
		return
	}
	_ = p.retry(ctx, "fill log", func() error { return p.fillUpTo(ctx, split) }) // ends with ctx: the next owner does it
}

func (p *Partition) fillUpTo(ctx context.Context, split partitions.Split) error {
	a, data, err := p.filler()
	if err != nil {
		return retry.Final(err)
	}
	subject, err := events.Input(events.KindBranch, a)
	if err != nil {
		return retry.Final(err)
	}
	log, err := topology.State(ctx, p.set.js, topology.LogStream)
	if err != nil {
		return err
	}
	for last, more := log.Last, true; more; more = last+1 < split.First {
		for n := last + 2; n < split.First && n < last+fillBatch; n++ {
			if err := p.set.js.Conn().Publish(subject, data); err != nil {
				return err
			}
		}
		ack, err := p.set.js.Publish(ctx, subject, data) // stored behind those
		if err != nil {
			return err
		}
		last = ack.Sequence
	}
	return nil
}

// ErrLogBehind: the node that was read from has less of the log than its leader. It is
// read again later.
var ErrLogBehind = errors.New("the log was not read to its end: the replica that was read is behind its leader")

// otherChain returns why a replay that ended at a position did not reach the marker's hash:
// it is another log, unless the event of the marker is there, and was not read.
func (r *recovery) otherChain(ctx context.Context, end position) error {
	if end.seq >= r.marker.seq {
		return errOtherChain
	}
	at, err := r.eventAt(ctx, uint64(r.marker.seq))
	switch {
	case err != nil:
		return err
	case at == nil:
		return errOtherChain
	}
	return fmt.Errorf("%w: %d of %d", ErrLogBehind, end.seq, r.marker.seq)
}
