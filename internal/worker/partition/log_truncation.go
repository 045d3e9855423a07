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
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/partitions"
)

const (
	// catchUpTime limits the wait for the log of a cluster to reach the marker: a newly elected leader
	// answers before it has applied all its messages. Messages that are still missing afterwards are lost.
	catchUpTime = 10 * time.Second
	// catchUpPoll is the interval between two reads of its state.
	catchUpPoll = 100 * time.Millisecond
)

// awaitLog reads the state of the log until it has reached a sequence, or for catchUpTime. A log with
// a single replica cannot catch up, so it does not wait for it.
func (s scope) awaitLog(ctx context.Context, seq uint64) (log topology.StreamState, err error) {
	end := time.Now().Add(catchUpTime)
	err = retry.Every(catchUpPoll).Until(ctx, func() (_ bool, err error) {
		log, err = topology.State(ctx, s.set.js, topology.LogStream)
		return log.Last >= seq || log.Replicas <= 1 || time.Now().After(end), err
	})
	return log, err
}

// eventAt returns an event of the log, nil if it has expired.
func (s scope) eventAt(ctx context.Context, seq uint64) (*stream.LogMessage, error) {
	found, err := stream.GetLog(ctx, s.set.config.Read, []uint64{seq})
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

// findTruncation returns the last event of the log that the marker's decisions are based on. truncated is
// false if the log is unchanged up to the marker.
func (r *recovery) findTruncation(ctx context.Context) (end uint64, truncated bool, err error) {
	if r.found.LastTime == 0 { // no marker, or one that was rolled back
		return r.log.Last, r.found.Cursor > r.log.Last, nil
	}
	if has, err := r.hasEventOf(ctx, r.found.Marker); has || err != nil {
		return 0, false, err
	}
	end, err = stream.LastUntil(ctx, r.set.js, topology.LogStream, time.UnixMilli(r.found.LastTime))
	return end, true, err
}

// hasEventOf reports whether the log still has the event of a marker. A power loss can remove the end of a
// log, and the server assigns its sequences again to new events. An event that took the place of another
// one has a later time than the marker holds.
func (r *recovery) hasEventOf(ctx context.Context, m commit.Marker) (bool, error) {
	return r.scope.hasEventOf(ctx, r.log, m)
}

func (s scope) hasEventOf(ctx context.Context, log topology.StreamState, m commit.Marker) (bool, error) {
	if m.Cursor > log.Last || m.LastTime == 0 {
		return m.Cursor <= log.Last, nil
	}
	at, err := s.eventAt(ctx, m.Cursor)
	if err != nil {
		return false, err
	}
	if at != nil {
		return at.Time.UnixMilli() <= m.LastTime, nil // the hash detects another event of the same time
	}
	if log.Replicas > 1 { // a copy that is behind may answer
		return true, nil
	}
	end, err := stream.LastUntil(ctx, s.set.js, topology.LogStream, time.UnixMilli(m.LastTime))
	return err == nil && end >= m.Cursor, err // else the event that replaced it was erased
}

// ErrTruncated: the server lost the end of the log while the partition was served. The next opening rolls the marker
// back.
var ErrTruncated = errors.New("the log was truncated while it was read")

// check ends the partition if the log lost the event before its position. It is called before the reading goes on
// after a lost link, in which the server may have lost power. Texts are read again: other events may have their
// sequences.
func (i *intake) check(ctx context.Context) {
	i.set.Payloads.EraseAll()
	at := i.ledgers.position()
	_ = retry.Every(retryPause).Do(ctx, i.retrying("read log"), func() error { // ends with the reading
		log, err := i.awaitLog(ctx, uint64(at.seq))
		if err != nil {
			return err
		}
		has, err := i.hasEventOf(ctx, log, commit.Marker{Cursor: uint64(at.seq), LastTime: at.time})
		if err == nil && !has {
			i.fail(fmt.Errorf("%w: its last sequence is %d, and events were decided up to %d", ErrTruncated, log.Last, at.seq))
		}
		return err
	})
}

// rolledBack returns the position after a truncation to end. A partition that was split off does not roll
// back before its split: up to there it applies the outcomes of its parent.
func (s scope) rolledBack(from position, end uint64) position {
	if l := s.set.Table().Lineage(s.ID); len(l) > 0 {
		end = max(end, l[len(l)-1].First-1)
	}
	return position{seq: measure.Seq(end), split: from.split}
}

// rollBackMarker moves the marker to the last decided event that the log still has. Outcomes of lost
// events stay published; later sequences are new events and are decided again.
func (r *recovery) rollBackMarker(ctx context.Context, end uint64) error {
	if r.marker = r.rolledBack(r.marker, end); uint64(r.marker.seq) > r.log.Last {
		return fmt.Errorf("the log was truncated to %d, below the split at %d", end, r.marker.split.First)
	}
	at, err := r.eventAt(ctx, uint64(r.marker.seq))
	if err != nil {
		return err
	}
	if at != nil {
		r.marker.time = at.Time.UnixMilli() // detects another truncation
	}
	if err := r.commits.Commit(ctx, nil, r.scope.marker(r.marker)); err != nil {
		return err
	}
	r.truncated = true
	r.retrying("open")(fmt.Errorf("log truncated: last sequence %d, outcomes committed up to %d", r.marker.seq, r.found.Cursor))
	return nil
}

// If the log was truncated below the split of a partition, the partition decides new events up to the split
// again, and its child waits. Both refuse requests until then. Events of agents alone might never reach the
// split, since agents that sync publish no event before they are answered. So the owner fills the log.

// toFill returns the split that the log of the partition has to reach again, or the zero value.
func (l *ledgers) toFill() partitions.Split {
	l.mu.Lock()
	defer l.mu.Unlock()
	if split := l.decided.split; l.beforeSplit(split) {
		return split
	}
	return partitions.Split{}
}

// filler returns an event that the owner of a partition publishes to fill the log. It changes nothing and
// has no outcome: no agent uses its session, so the session has no turn.
func (s scope) filler() (events.Address, []byte, error) {
	a := events.Address{Tenant: events.DefaultTenant, Session: "compactd-log-filler"}
	for i := 0; s.set.Of(a) != s.ID; i++ {
		a.Session = fmt.Sprintf("compactd-log-filler-%d", i)
	}
	data, err := codec.Marshal(events.Branch{Header: events.Header{V: events.Version}, Branch: "none"})
	return a, data, err
}

// fillBatch is the number of events published per acknowledgement to fill a log.
const fillBatch = 1000

// fill publishes events until the log has reached the split again. The last event belongs to this partition,
// so it reaches the split too.
func (p *Partition) fill(ctx context.Context) {
	split := p.toFill()
	if split.First == 0 {
		return
	}
	_ = p.retry(ctx, "fill log", func() error { return p.fillUpTo(ctx, split) }) // after ctx the next owner fills it
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
		ack, err := p.set.js.Publish(ctx, subject, data) // stored after them
		if err != nil {
			return err
		}
		last = ack.Sequence
	}
	return nil
}

// ErrLogBehind: a read from a replica ended before the marker. The log is read again later.
var ErrLogBehind = errors.New("the log was not read to its end: the replica that was read is behind its leader")

// otherChain returns the reason why a replay up to end misses the marker's hash: a different log, or
// [ErrLogBehind] if the log has the marker's event and the replay did not read it.
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
