package partition

import (
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
)

// position is a place between two events of a partition.
type position struct {
	seq   measure.Seq // of the event before it
	chain uint64      // hash over all events before it; 0 if unknown
	id    string      // of the event before it
	time  int64       // of the event before it, in Unix milliseconds

	config string // hash of the config of the decision before it; "" if unknown

	split partitions.Split // the newest split of the partition; events after the position follow it
}

// positionOfMarker and positionOfFile return the position of a marker and of a checkpoint.
func positionOfMarker(m commit.Marker) position {
	return position{seq: measure.Seq(m.Cursor), chain: m.Chain, id: m.LastID, time: m.LastTime, split: m.Split}
}

func positionOfFile(m kv.Position) position {
	return position{seq: measure.Seq(m.Cursor), chain: m.Chain, id: m.LastID, time: m.LastTime}
}

// positionAfter returns the position after an event. A session.forget begins a new chain, since
// events before it may be erased.
func positionAfter(before position, e decide.Event, at time.Time) position {
	if e.Kind == events.KindForget {
		before.chain = 0
	}
	return position{seq: e.Seq, chain: chain(before.chain, e), id: e.ID, time: at.UnixMilli(), split: before.split}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chain extends the hash of a partition by one event. It is never 0, which means unknown.
func chain(before uint64, e decide.Event) uint64 {
	var b [20]byte
	binary.BigEndian.PutUint64(b[:], before)
	binary.BigEndian.PutUint64(b[8:], uint64(e.Seq))
	binary.BigEndian.PutUint32(b[16:], crc32.Checksum(e.Data, castagnoli))
	h := fnv.New64a()
	h.Write(b[:])
	return max(1, h.Sum64())
}
