package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
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
// false while it is so up to the marker. A power loss takes the end of a log, and its
// sequences are issued again: to no agent yet, or to agents that came back before the
// worker did. Then the event at the marker is of a later time than the marker holds,
// and so are all events that took the place of others.
func (r *recovery) findTruncation(ctx context.Context) (end uint64, truncated bool, err error) {
	if r.found.LastTime == 0 { // of a marker that was rolled back, or of none
		return r.log.Last, r.found.Cursor > r.log.Last, nil
	}
	if r.found.Cursor <= r.log.Last {
		at, err := r.eventAt(ctx, r.found.Cursor)
		if err != nil || at == nil || at.Time.UnixMilli() <= r.found.LastTime {
			return 0, false, err // another event of that time, or an earlier one, has another hash
		}
	}
	end, err = stream.LastUntil(ctx, r.set.js, topology.LogStream, time.UnixMilli(r.found.LastTime))
	return end, true, err
}

// rollBackMarker moves the marker to the end of what the log still has of what was decided.
// Outcomes of the events that are gone stay published; the sequences after it
// are decided as the new events they are.
func (r *recovery) rollBackMarker(ctx context.Context, end uint64) error {
	r.marker = position{seq: compaction.Seq(end), split: r.marker.split}
	at, err := r.eventAt(ctx, end)
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
	r.retrying("open")(fmt.Errorf("log truncated: last sequence %d, outcomes committed up to %d", end, r.found.Cursor))
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
