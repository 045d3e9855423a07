package outcomelog

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction/measure"
)

// Markers holds the markers of a partition: its decided position, its config epochs, and its
// rollbacks.
type Markers struct {
	Index     // without outcomes
	End       commit.Stored
	rollbacks []rollback
	foreign   []commit.Foreign // messages that belong to no commit, in order
}

// rollback is a marker with a lower position than an earlier one: the log was truncated, and earlier
// outcomes of events after the position are superseded.
type rollback struct {
	at uint64 // of the marker, in OUTCOMES
	to measure.Seq
}

// superseded reports whether an outcome at a sequence of OUTCOMES belongs to a lost event.
func (h *Markers) superseded(at uint64, cause measure.Seq) bool {
	return slices.ContainsFunc(h.rollbacks, func(s rollback) bool { return at < s.at && cause > s.to })
}

// isForeign reports whether the message at a sequence of OUTCOMES belongs to no commit.
func (h *Markers) isForeign(at uint64) bool {
	_, found := slices.BinarySearchFunc(h.foreign, at, func(f commit.Foreign, at uint64) int {
		switch {
		case f.Last < at:
			return -1
		case f.First > at:
			return 1
		}
		return 0
	})
	return found
}

// ReadMarkers reads the markers of a partition.
func ReadMarkers(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, partition int) (*Markers, error) {
	h := &Markers{}
	var err error
	if h.End, err = commit.LastMarker(ctx, nc, partition); err != nil || h.End.Seq == 0 {
		return h, err
	}
	var last measure.Seq
	foreign := func(f commit.Foreign) { h.foreign = append(h.foreign, f) }
	all := stream.Selection{UpTo: h.End.Seq, HeadersOnly: true}
	return h, readCommits(ctx, js, partition, all, foreign, func(c commit.Commit[jetstream.Msg]) error {
		if c.Marker == nil {
			return nil
		}
		at := measure.Seq(c.Marker.Cursor)
		if at < last {
			h.rollbacks = append(h.rollbacks, rollback{c.Marker.Seq, at})
		}
		last = at
		h.ApplyMarker(c.Marker.Marker)
		return nil
	})
}
