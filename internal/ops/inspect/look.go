package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/request"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
	"compactd/internal/ops/workers"
)

// Report is the result of [Describe].
type Report struct {
	MaxAgeSeconds int64       `json:"max_age_seconds"` // of both streams
	Streams       []Stream    `json:"streams"`
	Partitions    []Partition `json:"partitions"`
	Growth        *Growth     `json:"growth,omitzero"` // nil where none is under way
	// Fleet is the report of the workers; absent if none runs, or if this user may not request it.
	Fleet *events.FleetResponse `json:"fleet,omitzero"`
}

// Stream is one of the two streams.
type Stream struct {
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	Messages uint64    `json:"messages"`
	Bytes    uint64    `json:"bytes"`
	MaxBytes int64     `json:"max_bytes"` // -1 for no bound
	First    uint64    `json:"first_seq"`
	Last     uint64    `json:"last_seq"`
}

// Partition has the progress and the owner of a partition, by its newest marker.
type Partition struct {
	Partition int    `json:"partition"`
	Owner     string `json:"owner"` // "" when it was never served
	Epoch     uint64 `json:"epoch"`
	// Leased states that a worker holds the lease; without one no worker serves the
	// partition. One that crashed holds it until the lease ends.
	Leased bool      `json:"leased"`
	Cursor uint64    `json:"cursor"`
	Config string    `json:"config"`
	Marked time.Time `json:"marked,omitzero"`
	// Behind counts the events after the cursor; LagMS is the age of the first of
	// them, in milliseconds.
	Behind uint64 `json:"behind"`
	LagMS  int64  `json:"lag_ms"`
	// Snapshot is the newest copy of the ledger file in the object store, if there is
	// one.
	Snapshot *Snapshot `json:"snapshot,omitzero"`
	// File is the ledger file in this machine's data directory, if it has one.
	File *File `json:"file,omitzero"`
	// Lineage are the splits that it came from, the last one its own, which has no sequence before it is made.
	Lineage []partitions.Split `json:"lineage,omitzero"`
}

// Snapshot describes the copy from which a worker without the ledger file starts.
type Snapshot struct {
	Cursor uint64    `json:"cursor"`
	Epoch  uint64    `json:"epoch"` // of the owner that took it
	Bytes  uint64    `json:"bytes"`
	Stored time.Time `json:"stored"`
}

// File describes a ledger file by its directory entry.
type File struct {
	Path        string    `json:"path"`
	Bytes       int64     `json:"bytes"`
	Changed     time.Time `json:"changed"`
	Quarantined int       `json:"quarantined"` // older ones that could not be trusted
}

// Describe reports on the streams of a server and the ledger files of a directory. It
// fails with [topology.ErrNoStreams] where no worker ever ran.
func Describe(ctx context.Context, js jetstream.JetStream, ledgers string) (*Report, error) {
	streams, err := topology.Describe(ctx, js)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	r := &Report{MaxAgeSeconds: int64(streams.MaxAge.Seconds()), Growth: growthOf(streams.Partitions)}
	r.add(topology.LogStream, streams.Log)
	r.add(topology.OutcomesStream, streams.Outcomes)
	if r.Fleet, err = workers.Request(ctx, js.Conn()); err != nil && !errors.Is(err, request.ErrNoWorker) {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	for id := range streams.Partitions.Count() {
		p, err := look(ctx, js, streams.Partitions, id)
		if err != nil {
			return nil, fmt.Errorf("inspect: %w", err)
		}
		p.File = fileOf(ledgers, id)
		r.Partitions = append(r.Partitions, p)
	}
	return r, nil
}

func (r *Report) add(name string, s topology.StreamState) {
	r.Streams = append(r.Streams, Stream{name, s.Created, s.Messages, s.Bytes, s.MaxBytes, s.First, s.Last})
}

func look(ctx context.Context, js jetstream.JetStream, t partitions.Table, id int) (Partition, error) {
	m, err := commit.LastMarker(ctx, js.Conn(), id)
	if err != nil {
		return Partition{}, err
	}
	p := Partition{Partition: id, Owner: m.Owner, Epoch: m.Epoch, Cursor: m.Cursor, Config: m.Config, Marked: m.Time, Lineage: t.Lineage(id)}
	if p.Snapshot, err = snapshotOf(ctx, js, id); err != nil {
		return p, err
	}
	if _, p.Leased, err = coord.LeaseAge(ctx, js, id); err != nil || !t.Decides(id) {
		return p, err
	}
	behind, lag, err := stream.Backlog(ctx, js, t.Sources(id, m.Cursor), m.Cursor)
	p.Behind, p.LagMS = behind, lag.Milliseconds()
	return p, err
}

// snapshotOf returns the snapshot, nil without one.
func snapshotOf(ctx context.Context, js jetstream.JetStream, id int) (*Snapshot, error) {
	s, err := snapshot.New(js).Newest(ctx, id)
	if errors.Is(err, snapshot.ErrNone) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Snapshot{Cursor: s.Marker.Cursor, Epoch: s.Marker.Epoch, Bytes: s.Bytes, Stored: s.Time}, nil
}

// fileOf is nil where there is no file, or none that can be looked at.
func fileOf(ledgers string, id int) *File {
	at := filepath.Join(ledgers, fmt.Sprintf("p%d.db", id))
	info, err := os.Stat(at)
	if err != nil {
		return nil
	}
	bad, _ := filepath.Glob(at + ".bad-*") // fails on a bad pattern only
	return &File{Path: at, Bytes: info.Size(), Changed: info.ModTime(), Quarantined: len(bad)}
}

// owner names the owner for readers.
func (p *Partition) owner() string {
	switch {
	case p.Owner == "":
		return "none yet"
	case !p.Leased:
		return "none, last " + p.Owner
	}
	return p.Owner
}

// Write prints the report as tables.
func (r *Report) Write(w io.Writer) error {
	t := term.NewTable(w, term.Column{Name: "STREAM"}, term.Column{Name: "MESSAGES", Right: true}, term.Column{Name: "SIZE", Right: true},
		term.Column{Name: "MAX SIZE", Right: true}, term.Column{Name: "FIRST", Right: true, Drop: 1}, term.Column{Name: "LAST", Right: true},
		term.Column{Name: "CREATED", Drop: 2})
	for _, s := range r.Streams {
		most := "no bound"
		if s.MaxBytes >= 0 {
			most = units.Bytes(s.MaxBytes)
		}
		t.Row(s.Name, s.Messages, units.Bytes(s.Bytes), most, s.First, s.Last, s.Created.Format(time.RFC3339))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = term.NewTable(w, term.Column{Name: "PARTITION", Right: true}, term.Column{Name: "EPOCH", Right: true}, term.Column{Name: "CURSOR", Right: true},
		term.Column{Name: "BEHIND", Right: true}, term.Column{Name: "LAG", Right: true}, term.Column{Name: "SNAPSHOT", Right: true, Drop: 1},
		term.Column{Name: "FILE", Right: true}, term.Column{Name: "OWNER", Min: 10})
	for _, p := range r.Partitions {
		file, copied := "-", "-"
		if p.File != nil {
			file = units.Bytes(p.File.Bytes)
			if p.File.Quarantined > 0 {
				file += fmt.Sprintf(" (%d quarantined)", p.File.Quarantined)
			}
		}
		if p.Snapshot != nil {
			copied = fmt.Sprint(p.Snapshot.Cursor)
		}
		t.Row(p.Partition, p.Epoch, p.Cursor, p.Behind, units.Span(time.Duration(p.LagMS)*time.Millisecond), copied, file, p.owner())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := r.Growth.write(w); err != nil || r.Fleet == nil {
		return err
	}
	fmt.Fprintln(w)
	return workers.Write(w, r.Fleet)
}
