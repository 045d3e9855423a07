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
