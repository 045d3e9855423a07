package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// metaPartitions is the metadata key of the table of a log that grew, in the form of [partitions.Table.String].
const metaPartitions = "compactd-partitions"

// Grow requests twice the partitions of a log: it adds a growth to the table, and owners then split their partitions.
// It returns [partitions.ErrGrowing] while an earlier growth is under way.
func Grow(ctx context.Context, js jetstream.JetStream) (partitions.Table, error) {
	streams, err := Describe(ctx, js)
	if err != nil {
		return partitions.Table{}, fmt.Errorf("grow the log: %w", err)
	}
	grown, err := streams.Partitions.Grow()
	if err != nil {
		return streams.Partitions, fmt.Errorf("grow the log: %w", err)
	}
	return Record(ctx, js, grown)
}

// Record merges known into the stored table of a log, and returns the result. Once each partition of a growth is
// split, it also changes the transform. Any number of workers may call it, each with a part of the table. A
// concurrent update of another setting may undo it: call it again until the table of [Describe] has everything.
func Record(ctx context.Context, js jetstream.JetStream, known partitions.Table) (t partitions.Table, err error) {
	log, err := lookUp(ctx, js, LogStream)
	if err == nil && log == nil {
		err = ErrNoStreams
	}
	if err != nil {
		return known, fmt.Errorf("record partitions: %w", err)
	}
	var refused error
	err = update(ctx, js, log, func(c *jetstream.StreamConfig) bool {
		stored, bad := tableOf(*c)
		if len(bad) > 0 {
			refused = &MismatchError{bad}
			return false
		}
		if t, refused = stored.Merge(known); refused != nil || t.Equal(stored) {
			return false
		}
		c.Metadata = maps.Clone(c.Metadata)
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		c.Metadata[metaPartitions] = t.String()
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: events.InputPattern, Destination: events.GrownTransform(transformed(t))}
		return true
	})
	return t, jsapi.Wrap(errors.Join(refused, err), "record partitions")
}

// transformed returns the number of partitions in the transform of a log. It includes those of a growth only once
// each partition is split.
func transformed(t partitions.Table) int {
	if len(t.Unsplit()) > 0 {
		return t.Count() / 2
	}
	return t.Count()
}

// tableOf reads the table of an existing log. It returns an empty table with mismatches.
func tableOf(c jetstream.StreamConfig) (t partitions.Table, bad []Mismatch) {
	m, transform := mismatches{stream: c.Name}, cmp.Or(c.SubjectTransform, &jetstream.SubjectTransformConfig{})
	text, grown := c.Metadata[metaPartitions]
	var p int
	if _, err := fmt.Sscanf(transform.Destination, "log.{{partition(%d,", &p); err != nil || p < 1 {
		p = DefaultPartitions // for a valid example in the mismatch
	}
	var err error
	t, want := partitions.New(p), events.LogTransform(p)
	if grown {
		t, err = partitions.Parse(text)
		want = events.GrownTransform(transformed(t))
	}
	switch {
	case err != nil:
		m.add("metadata "+metaPartitions, text, "one that this version reads: "+err.Error())
	case !grown && transform.Destination == events.GrownTransform(p):
		m.add("metadata "+metaPartitions, "missing", "there, as the log has grown")
	case transform.Source != events.InputPattern || transform.Destination != want:
		m.add("subject transform", show(c.SubjectTransform), "from "+events.InputPattern+" to "+want)
	default:
		return t, nil
	}
	return partitions.Table{}, m.list
}
