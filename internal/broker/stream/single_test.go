package stream

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
)

// The messages of one session are read in order, from a sequence to the end, and leaves
// nothing behind on the server.
func TestReadSubject(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	for n := range 6 {
		for _, session := range []string{"a", "b"} {
			if _, err := w.JS.Publish(t.Context(), "session.turn.default."+session, fmt.Appendf(nil, "%s%d", session, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	read := func(m LogMessage) error { got = append(got, string(m.Data)); return nil }
	if err := ReadSubject(t.Context(), w.NC, topology.LogStream, "log.*.turn.default.a", 4, read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a2", "a3", "a4", "a5"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	enough := errors.New("enough")
	if err := ReadSubject(t.Context(), w.NC, topology.LogStream, "log.*.turn.default.b", 0, func(LogMessage) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the reader's error: %v", err)
	}
	if m, err := LastOf(t.Context(), w.NC, topology.LogStream, "log.*.*.default.b"); err != nil || string(m.Data) != "b5" || m.Seq != 12 {
		t.Errorf("the last: %+v, %v", m, err)
	}
	if _, err := LastOf(t.Context(), w.NC, topology.LogStream, "log.*.*.default.c"); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("the last of nothing: %v", err)
	}
	if err := ReadSubject(t.Context(), w.NC, "NONE", "x", 1, read); !errors.Is(err, topology.ErrNoStreams) {
		t.Errorf("no such stream: %v", err)
	}
	if may, err := MayRead(t.Context(), w.NC); !may || err != nil {
		t.Errorf("may read: %v, %v", may, err)
	}
	stream, err := w.JS.Stream(t.Context(), topology.LogStream)
	if err != nil || stream.CachedInfo().State.Consumers != 0 {
		t.Errorf("consumers are left: %v", err)
	}
}

// Of several subjects, as a session has in a log that grew, each is read in order, and the newest message is found.
func TestReadSubjects(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	for n, session := range []string{"a", "b", "a", "b", "b", "a", "c"} {
		w.Turn(session, fmt.Sprint(session, n))
	}
	filters := []string{"log.*.turn.t.b", "log.*.turn.t.none", "log.*.turn.t.a"}
	var got []string
	for _, end := range []string{"a5", "b3"} {
		if err := ReadSubjects(t.Context(), w.NC, topology.LogStream, filters, 2, func(m LogMessage) error {
			if got = append(got, string(m.Data)); got[len(got)-1] == end {
				return ErrEnd
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"b1", "b3", "b4", "a2", "a5", "b1", "b3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m, err := LastOf(t.Context(), w.NC, topology.LogStream, filters...); err != nil || m.Seq != 6 {
		t.Errorf("the newest is %+v: %v", m, err)
	}
	if _, err := LastOf(t.Context(), w.NC, topology.LogStream, filters[1]); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("the newest of nothing: %v", err)
	}
	var all []int
	for p := range w.Streams.Partitions.Count() {
		all = append(all, p)
	}
	for cursor, want := range []uint64{1, 2, 3, 4, 5, 6, 7, 0} {
		first, err := Waiting(t.Context(), w.JS, all, uint64(cursor))
		behind, _, failed := Backlog(t.Context(), w.JS, all, uint64(cursor))
		if err != nil || failed != nil || first.Seq != want || behind != uint64(7-cursor) {
			t.Errorf("behind %d wait %d, the first at %d: %v, %v", cursor, behind, first.Seq, err, failed)
		}
	}
}
