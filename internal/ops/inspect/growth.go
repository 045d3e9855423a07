package inspect

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events/partitions"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// Growth is a growth of the log that is under way.
type Growth struct {
	From    int   `json:"from"`    // partitions before it
	To      int   `json:"to"`      // partitions after it
	Unsplit []int `json:"unsplit"` // those that are still to be split
}

// growthOf is nil where none is under way.
func growthOf(t partitions.Table) *Growth {
	left := t.Unsplit()
	if len(left) == 0 {
		return nil
	}
	return &Growth{t.Count() / 2, t.Count(), left}
}

func (g *Growth) String() string {
	left := make([]string, len(g.Unsplit))
	for i, p := range g.Unsplit {
		left[i] = fmt.Sprint(p)
	}
	return fmt.Sprintf("the log grows from %d to %d partitions; still to be split: %s", g.From, g.To, first(left, 8))
}

func (g *Growth) write(w io.Writer) error {
	if g == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", g)
	return err
}

// Load is the work of each partition of a log.
type Load struct {
	Count      int             `json:"count"`
	Growth     *Growth         `json:"growth,omitzero"`
	Partitions []PartitionLoad `json:"partitions"`
}

// PartitionLoad is one of them.
type PartitionLoad struct {
	Partition
	Minute   uint64 `json:"events_last_minute"` // stored under its subjects
	Sessions int64  `json:"sessions"`           // in memory of its owner; 0 where that does not answer
}

// loadTime is the time over which events are counted.
const loadTime = time.Minute

// Measure reports the load of the partitions of a log, with the ledger files of a directory.
func Measure(ctx context.Context, js jetstream.JetStream, ledgers string) (*Load, error) {
	r, err := Describe(ctx, js, ledgers)
	if err != nil {
		return nil, err
	}
	before, err := stream.LastUntil(ctx, js, topology.LogStream, time.Now().Add(-loadTime))
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	out := &Load{Count: len(r.Partitions), Growth: r.Growth}
	for id, p := range r.Partitions {
		one := PartitionLoad{Partition: p}
		if one.Minute, err = stream.Behind(ctx, js, []int{id}, before); err != nil {
			return nil, fmt.Errorf("measure: %w", err)
		}
		if r.Fleet != nil && id < len(r.Fleet.Partitions) { // a worker may learn of a growth later
			one.Sessions = r.Fleet.Partitions[id].Sessions
		}
		out.Partitions = append(out.Partitions, one)
	}
	return out, nil
}

// Write prints the load as a table.
func (l *Load) Write(w io.Writer) error {
	t := term.NewTable(w, term.Column{Name: "PARTITION", Right: true}, term.Column{Name: "EPOCH", Right: true, Drop: 2}, term.Column{Name: "CURSOR", Right: true},
		term.Column{Name: "BEHIND", Right: true}, term.Column{Name: "LAG", Right: true}, term.Column{Name: "EVENTS", Right: true}, term.Column{Name: "IN MEMORY", Right: true},
		term.Column{Name: "SNAPSHOT", Right: true}, term.Column{Name: "SPLIT OFF", Drop: 1}, term.Column{Name: "OWNER", Min: 10})
	for _, p := range l.Partitions {
		from, copied := "-", "-"
		if n := len(p.Lineage); n > 0 {
			if from = fmt.Sprintf("%d, to come", p.Lineage[n-1].Parent); p.Lineage[n-1].First > 0 {
				from = fmt.Sprintf("%d at %d", p.Lineage[n-1].Parent, p.Lineage[n-1].First)
			}
		}
		if p.Snapshot != nil {
			copied = units.Bytes(p.Snapshot.Bytes)
		}
		t.Row(p.Partition.Partition, p.Epoch, p.Cursor, p.Behind, units.Span(time.Duration(p.LagMS)*time.Millisecond), fmt.Sprintf("%d/min", p.Minute), p.Sessions, copied, from, p.owner())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return l.Growth.write(w)
}

// growth reports a growth of the log that is under way.
func (d *doctor) growth(s *topology.Streams) {
	g := growthOf(s.Partitions)
	if g == nil {
		return
	}
	d.note("growth", "a partition is split once workers hold both halves; if that takes long, see /readyz of the workers: a worker with a full disk opens no partition", "%s", g)
}
