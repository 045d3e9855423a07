package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
)

const (
	// catchUpTime is how long the log of a cluster may seem to end before what was
	// decided: a leader that was just elected answers before it has applied all it
	// has. What is still missing then is lost.
	catchUpTime = 10 * time.Second
	// catchUpPoll is how often its state is read.
	catchUpPoll = 100 * time.Millisecond
)

// awaitLog returns the state of the log once it has reached cursor, or is known to have
// lost it. The single copy of a server on its own is all there is.
func (p *Partition) awaitLog(ctx context.Context, cursor uint64) (topology.StreamState, error) {
	for end := time.Now().Add(catchUpTime); ; {
		log, err := topology.State(ctx, p.set.js, topology.LogStream)
		if err != nil || log.Last >= cursor || log.Replicas <= 1 || time.Now().After(end) {
			return log, err
		}
		select {
		case <-ctx.Done():
			return log, ctx.Err()
		case <-time.After(catchUpPoll):
		}
	}
}

// findTruncation returns where the log stops being the one that was decided on; lost is
// false while it is so up to the marker. A power loss takes the end of a log, and its
// sequences are issued again: to no agent yet, or to agents that came back before the
// worker did. Then the event at the marker is of a later time than the marker holds,
// and so are all events that took the place of others.
func (p *Partition) findTruncation(ctx context.Context, log topology.StreamState, found commit.Stored) (end uint64, lost bool, err error) {
	if found.LastTime == 0 { // of a marker that went back before, or of none
		return log.Last, found.Cursor > log.Last, nil
	}
	if found.Cursor <= log.Last {
		at, err := stream.GetLog(ctx, p.set.config.Read, []uint64{found.Cursor})
		if _, gone := errors.AsType[*stream.GoneError](err); gone {
			return 0, false, nil // aged away since
		}
		if err != nil || at[0].Time.UnixMilli() <= found.LastTime {
			return 0, false, err // another event of that time, or an earlier one, has another hash
		}
	}
	end, err = stream.LastUntil(ctx, p.set.js, topology.LogStream, time.UnixMilli(found.LastTime))
	return end, true, err
}

// rollBackMarker moves the marker to the end of what the log still has of what was decided.
// What was published about the events that are gone stays published; the sequences after it
// are decided as the new events they are.
func (p *Partition) rollBackMarker(ctx context.Context, end, from uint64) (position, error) {
	marker := position{seq: compaction.Seq(end)}
	at, err := stream.GetLog(ctx, p.set.config.Read, []uint64{end})
	if _, gone := errors.AsType[*stream.GoneError](err); err != nil && !gone {
		return position{}, err
	}
	if err == nil {
		marker.time = at[0].Time.UnixMilli() // should the power go again
	}
	if err := p.committer.Commit(ctx, nil, p.marker(marker)); err != nil {
		return position{}, err
	}
	p.truncated = true
	p.retrying("open")(fmt.Errorf("log truncated: last sequence %d, outcomes committed up to %d", end, from))
	return marker, nil
}

// ErrLogBehind: the node that was read from has less of the log than its leader. It is
// read again later.
var ErrLogBehind = errors.New("the log was not read to its end: the replica that was read is behind its leader")

// otherChain returns why a replay did not reach the marker's hash: it is another log,
// unless the replay ended before the event of the marker, and that event is there.
func (p *Partition) otherChain(ctx context.Context, marker position) error {
	if p.decided.seq >= marker.seq {
		return errOtherChain
	}
	_, err := stream.GetLog(ctx, p.set.config.Read, []uint64{uint64(marker.seq)})
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return errOtherChain
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %d of %d", ErrLogBehind, p.decided.seq, marker.seq)
}
