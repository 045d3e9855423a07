package redecide

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events/partitions"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
)

// family is a set of partitions that shared sessions. A growth moves half of the sessions of a partition to
// another one, which continues with their ledgers.
type family struct {
	ids     []int
	table   partitions.Table
	markers map[int]*outcomelog.Markers
	end     uint64 // the highest cursor
}

// readFamily reads the markers of each partition, and adds their splits of an incomplete growth to the table.
func readFamily(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, t partitions.Table, ids []int) (*family, error) {
	f := &family{ids, t, map[int]*outcomelog.Markers{}, 0}
	for _, id := range ids {
		h, err := outcomelog.ReadMarkers(ctx, nc, js, id)
		if err == nil {
			f.table, err = f.table.With(h.End.Split)
		}
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", id, err)
		}
		f.markers[id], f.end = h, max(f.end, h.End.Cursor)
	}
	return f, nil
}

// decider returns the partition that decided an event and its markers, which are nil for an undecided event.
func (f *family) decider(e *decide.Event) (id int, h *outcomelog.Markers) {
	id = f.table.At(e.Address, uint64(e.Seq))
	if h = f.markers[id]; h == nil || uint64(e.Seq) > h.End.Cursor {
		return id, nil
	}
	return id, h
}
