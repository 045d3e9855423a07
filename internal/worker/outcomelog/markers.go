package outcomelog

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Markers is how far a partition is decided, which config was in force when, and
// which outcomes are void.
type Markers struct {
	Index     // without outcomes
	End       commit.Stored
	rollbacks []rollback
}

// rollback is a marker that lies behind an earlier one: the log was truncated,
// and what was published before about events behind the marker is superseded.
type rollback struct {
	at uint64 // of the marker, in OUTCOMES
	to compaction.Seq
}

// superseded reports whether an outcome stored at a sequence of OUTCOMES was published about
// an event that is gone.
func (h *Markers) superseded(at uint64, cause compaction.Seq) bool {
	return slices.ContainsFunc(h.rollbacks, func(s rollback) bool { return at < s.at && cause > s.to })
}

// ReadMarkers reads the markers of a partition.
func ReadMarkers(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, partition int) (*Markers, error) {
	h := &Markers{}
	var err error
	if h.End, err = commit.LastMarker(ctx, nc, partition); err != nil || h.End.Seq == 0 {
		return h, err
	}
	var last compaction.Seq
	all := stream.Selection{
		Stream: topology.OutcomesStream, Filters: []string{events.OutcomeFilter(partition)}, UpTo: h.End.Seq, HeadersOnly: true,
	}
	return h, read(ctx, js, all, nil, func(marker commit.Marker, seq uint64) {
		if at := compaction.Seq(marker.Cursor); at < last {
			h.rollbacks = append(h.rollbacks, rollback{seq, at})
		}
		last = compaction.Seq(marker.Cursor)
		h.ApplyMarker(marker)
	})
}
