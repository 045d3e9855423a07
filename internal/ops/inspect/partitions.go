package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/ops/units"
)

// partitions checks that each has an owner, which decides its events before they expire.
func (d *doctor) partitions(ctx context.Context, js jetstream.JetStream, s *topology.Streams) {
	var unowned []string
	bad := false
	for id := range s.Partitions.Count() {
		if !s.Partitions.Decides(id) { // its parent is looked at
			continue
		}
		_, held, err := coord.LeaseAge(ctx, js, id)
		if err != nil {
			d.problem("partitions", "may this user read the bucket LEASES?", "%v", err)
			return
		}
		if !held {
			unowned = append(unowned, fmt.Sprint(id))
		}
		bad = d.waits(ctx, js, s, id, held) || bad
	}
	if n := len(unowned); n > 0 {
		d.problem("partitions", "start a worker; one that was killed holds its partitions for --lease-ttl", "%d of %d have no owner, and no event of theirs is decided: %s", n, s.Partitions.Count(), first(unowned, 8))
	} else if !bad {
		d.ok("partitions", "%d have an owner and are decided up to their ends", s.Partitions.Count())
	}
}

// first lists the first most of some names.
func first(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// waits reports whether events of a partition wait too long. A marker that cannot be read is a
// finding of its own.
func (d *doctor) waits(ctx context.Context, js jetstream.JetStream, s *topology.Streams, id int, held bool) bool {
	m, err := commit.LastMarker(ctx, d.Conn, id)
	if err != nil {
		return true
	}
	oldest, err := stream.Waiting(ctx, js, s.Partitions.Sources(id, m.Cursor), m.Cursor)
	if err != nil {
		d.problem("partitions", "", "%v", err)
		return true
	}
	age := d.Now().Sub(oldest.Time).Truncate(time.Second)
	if oldest.Seq == 0 || age < longWait {
		return false
	}
	hint, who := "start a worker", "no worker serves it"
	if held {
		hint, who = "its log has `partition failed, opening it again` with the reason, or `retrying`", m.Owner+" does not decide them"
	}
	d.problem("partitions", hint, "partition %d: its events wait for %s, the first at sequence %d: %s", id, units.Span(age), oldest.Seq, who)
	d.figures(Figures{AgeSeconds: int64(age.Seconds())})
	if s.MaxAge > 0 && age > s.MaxAge/2 {
		d.problem("expiry", "raise the age of both streams with the nats tool until the partition is decided", "partition %d: the log drops sequence %d in %s, before it is decided", id, oldest.Seq, units.Span(max(0, s.MaxAge-age)))
	}
	return true
}

// late reports whether events that were decided an hour ago are in no snapshot of their partition, and adds that.
func (d *doctor) late(ctx context.Context, js jetstream.JetStream, s *topology.Streams, id int, newest *snapshot.Snapshot) bool {
	since, found := d.decidedAfter(ctx, js, s, id, newest.Marker.Cursor)
	if !found || since < longSnapshot {
		return false
	}
	d.problem("snapshots", "`retrying` in the worker's log, with the step `snapshot`, has the reason; with --snapshot-every 0 there are none",
		"that of partition %d lacks all since %s ago: a worker without files decides it again", id, units.Span(since))
	d.figures(Figures{AgeSeconds: int64(since.Seconds())})
	return true
}

// decidedAfter returns how long ago the first event of a partition behind seq was stored, if it is decided.
func (d *doctor) decidedAfter(ctx context.Context, js jetstream.JetStream, s *topology.Streams, id int, seq uint64) (since time.Duration, found bool) {
	m, err := commit.LastMarker(ctx, d.Conn, id)
	if err != nil || m.Cursor <= seq {
		return 0, false
	}
	next, err := stream.Waiting(ctx, js, s.Partitions.Sources(id, seq), seq)
	if err != nil || next.Seq == 0 || next.Seq > m.Cursor {
		return 0, false
	}
	return d.Now().Sub(next.Time).Truncate(time.Second), true
}
