package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// small is a server with a log of two partitions.
func small(t *testing.T) jetstream.JetStream {
	t.Helper()
	js := connectTo(t, smallServer(t, 1<<30))
	if _, err := Ensure(t.Context(), js, Config{Partitions: 2, CreateBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	return js
}

func configOf(t *testing.T, js jetstream.JetStream) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), LogStream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config
}

func table(t *testing.T, s string) partitions.Table {
	t.Helper()
	out, err := partitions.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// readsBefore is how a version without growth reads the partitions of a log; 0 is refused.
func readsBefore(c jetstream.StreamConfig) (p int) {
	if _, err := fmt.Sscanf(c.SubjectTransform.Destination, "log.{{partition(%d,", &p); err != nil || c.SubjectTransform.Destination != events.LogTransform(p) {
		return 0
	}
	return p
}

// A log grows: from the request on older versions refuse it, and the transform changes when each partition is split.
// All of it may be repeated, and what one worker has read is added to what another one recorded.
func TestGrow(t *testing.T) {
	t.Parallel()
	js := small(t)
	before := configOf(t, js)
	if readsBefore(before) != 2 || before.Metadata[metaPartitions] != "" {
		t.Fatalf("a log that never grew has %v, %v", before.SubjectTransform, before.Metadata)
	}
	begun, err := Grow(t.Context(), js)
	if err != nil || begun.String() != `{"first":2,"splits":[[0,0]]}` {
		t.Fatalf("began as %s: %v", begun, err)
	}
	if _, err := Grow(t.Context(), js); !errors.Is(err, partitions.ErrGrowing) {
		t.Errorf("a second growth: %v", err)
	}
	for _, step := range []struct {
		known, want string
		count       int // of the transform
	}{
		{`{"first":2}`, `{"first":2,"splits":[[0,0]]}`, 2}, // of a worker that has not read the request
		{`{"first":2,"splits":[[0,7]]}`, `{"first":2,"splits":[[0,7]]}`, 2},
		{`{"first":2,"splits":[[5,0]]}`, `{"first":2,"splits":[[5,7]]}`, 4},
		{`{"first":2,"splits":[[0,7]]}`, `{"first":2,"splits":[[5,7]]}`, 4},
		{`{"first":2,"splits":[[5,7],[0,0,0,0]]}`, `{"first":2,"splits":[[5,7],[0,0,0,0]]}`, 4},
	} {
		got, err := Record(t.Context(), js, table(t, step.known))
		c := configOf(t, js)
		if err != nil || got.String() != step.want || c.Metadata[metaPartitions] != step.want || c.SubjectTransform.Destination != events.GrownTransform(step.count) {
			t.Errorf("%s is recorded as %s, in %v, %s: %v", step.known, got, c.Metadata, c.SubjectTransform.Destination, err)
		}
		if p := readsBefore(c); p != 0 {
			t.Errorf("a version without growth reads %d partitions", p)
		}
		found, err := Ensure(t.Context(), js, Config{Partitions: 8})
		if err != nil || !found.Partitions.Equal(got) {
			t.Errorf("a worker finds %s: %v", found.Partitions, err)
		}
	}
	if _, err := Record(t.Context(), js, table(t, `{"first":2,"splits":[[5,8]]}`)); !errors.Is(err, partitions.ErrSplit) {
		t.Errorf("a split was moved: %v", err)
	}
	if _, err := Record(t.Context(), js, partitions.New(4)); !errors.Is(err, partitions.ErrSplit) {
		t.Errorf("the table of another log was recorded: %v", err)
	}
	after := configOf(t, js)
	after.SubjectTransform, after.Metadata = before.SubjectTransform, before.Metadata
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the growth changed more: %s", diff)
	}
}

// A table and a transform that do not belong together are refused, by their names.
func TestGrownMismatch(t *testing.T) {
	t.Parallel()
	js := small(t)
	whole, half := `{"first":1,"splits":[[3]]}`, `{"first":1,"splits":[[0]]}`
	for _, c := range []struct {
		metadata  string // "" is none
		transform string
		want      string // "" is accepted
	}{
		{whole, events.GrownTransform(2), ""},
		{half, events.GrownTransform(1), ""},
		{whole, events.LogTransform(2), "subject transform"},
		{whole, events.GrownTransform(1), "subject transform"},
		{half, events.GrownTransform(2), "subject transform"},
		{"", events.GrownTransform(2), "metadata compactd-partitions is missing"},
		{`{"first":0}`, events.GrownTransform(2), "metadata compactd-partitions is "},
	} {
		config := configOf(t, js)
		config.Metadata, config.SubjectTransform.Destination = map[string]string{}, c.transform
		if c.metadata != "" {
			config.Metadata[metaPartitions] = c.metadata
		}
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		for name, call := range map[string]func() error{
			"Ensure":   func() error { _, err := Ensure(t.Context(), js, Config{}); return err },
			"Describe": func() error { _, err := Describe(t.Context(), js); return err },
			"Record":   func() error { _, err := Record(t.Context(), js, table(t, whole)); return err },
		} {
			if name == "Record" && c.want == "" {
				continue
			}
			err := call()
			bad, refused := errors.AsType[*MismatchError](err)
			if refused != (c.want != "") || refused && (len(bad.Mismatches) != 1 || !strings.Contains(err.Error(), LogStream+": "+c.want)) {
				t.Errorf("%s of %q with %s: %v", name, c.metadata, c.transform, err)
			}
		}
	}
}

// raced is a server whose log another worker changes right after it was looked up.
type raced struct {
	jetstream.JetStream
	once   sync.Once
	change func()
}

func (r *raced) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := r.JetStream.Stream(ctx, name)
	if name == LogStream {
		r.once.Do(r.change)
	}
	return s, err
}

// A worker that starts with another bound, and has looked the log up before it grew, leaves the growth as it is.
func TestEnsureKeepsGrowth(t *testing.T) {
	t.Parallel()
	js := small(t)
	grown := &raced{JetStream: js, change: func() {
		if _, err := Grow(t.Context(), js); err != nil {
			t.Error(err)
		}
	}}
	s, err := Ensure(t.Context(), grown, Config{MaxBytesLog: 80 << 20})
	if err != nil || s.Log.MaxBytes != 80<<20 || s.Partitions.Count() != 4 {
		t.Fatalf("started with %s, bound %d: %v", s.Partitions, s.Log.MaxBytes, err)
	}
	if got := configOf(t, js).Metadata[metaPartitions]; got != s.Partitions.String() {
		t.Errorf("the log has %q", got)
	}
}

// The facts of the server that docs/adr/0060 rests on. A transform is changed while events are published: each event has
// the subject of the old or the new one, all that are published behind the answer to the update have the new one, and a
// reader of both subjects gets them in the order of the log. An update replaces the metadata, whatever they were
// when its caller read them; recording the table again repairs that.
func TestServerChangesTransform(t *testing.T) {
	t.Parallel()
	js := small(t)
	stale := configOf(t, js)
	sessions := make([]events.Address, 16)
	for i := range sessions {
		sessions[i] = events.Address{Tenant: "t", Session: fmt.Sprint("s", i)}
	}
	n := 0
	publish := func() {
		if _, err := js.Publish(t.Context(), events.Published(events.KindTurn, sessions[n%len(sessions)]), fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
		n++
	}
	for range 100 {
		publish()
	}
	whole, updated := table(t, `{"first":2,"splits":[[1,1]]}`), make(chan error)
	go func() {
		_, err := Record(t.Context(), js, whole)
		updated <- err
	}()
	during := true
	for during {
		select {
		case err := <-updated:
			if during = false; err != nil {
				t.Fatal(err)
			}
		default:
			publish()
		}
	}
	late := n // published behind the answer
	for range 100 {
		publish()
	}

	c, err := js.OrderedConsumer(t.Context(), LogStream, jetstream.OrderedConsumerConfig{FilterSubjects: events.LogFilters([]int{0, 1, 2, 3})})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := c.Fetch(n)
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	found, newest := map[int]int{}, map[events.Address]int{}
	for m := range batch.Messages() {
		md, err := m.Metadata()
		at, bad := events.ParseLog(m.Subject())
		if err != nil || bad != nil || md.Sequence.Stream != last+1 {
			t.Fatalf("message %+v came after %d: %v, %v", md, last, err, bad)
		}
		last = md.Sequence.Stream
		var i int
		if _, err := fmt.Sscan(string(m.Data()), &i); err != nil {
			t.Fatal(err)
		}
		before, after := events.PartitionOf(at.Address, 2), events.PartitionOf(at.Address, 4)
		switch {
		case at.Partition != before && at.Partition != after:
			t.Errorf("event %d is stored under %d, not %d or %d", last, at.Partition, before, after)
		case i >= late && at.Partition != after:
			t.Errorf("event %d of the new transform is stored under %d", last, at.Partition)
		}
		if i < newest[at.Address] {
			t.Errorf("event %d of a session came after %d", i, newest[at.Address])
		}
		newest[at.Address] = i
		found[at.Partition]++
	}
	if last != uint64(n) || len(found) != 4 {
		t.Errorf("%d events have partitions %v", last, found)
	}

	if _, err := js.UpdateStream(t.Context(), stale); err != nil { // no revision is expected
		t.Fatal(err)
	}
	if c := configOf(t, js); c.Metadata[metaPartitions] != "" || readsBefore(c) != 2 {
		t.Errorf("the stale update left %v, %v", c.Metadata, c.SubjectTransform)
	}
	if _, err := Record(t.Context(), js, whole); err != nil {
		t.Fatal(err)
	}
	if s, err := Describe(t.Context(), js); err != nil || !s.Partitions.Equal(whole) {
		t.Errorf("repaired as %s: %v", s.Partitions, err)
	}
}
