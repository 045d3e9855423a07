package service_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A history lists every stored session.compacted of one session, the newest first. Entries
// beyond the limit are counted.
func TestHistory(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	for _, session := range []string{"s1", "s2"} {
		env.Publish(events.KindTurn, session, workertest.CallsTurn(1, "read_file:/a.go", "read_file:/b.go"))
		env.Publish(events.KindCompact, session, []byte(`{"id":"now"}`))
	}
	env.Publish(events.KindRewind, "s1", []byte(`{"id":"back","generation":0}`))
	env.AwaitDecided()
	var want []events.HistoryEntry
	err := stream.ReadStream(t.Context(), env.JS, topology.OutcomesStream, "out.*.compacted.default.s1", 1, 0, func(m jetstream.Msg, _ uint64) error {
		body, err := events.DecodeOutcome(events.KindCompacted, m.Data())
		if err != nil {
			return err
		}
		at, err := m.Metadata()
		if err != nil {
			return err
		}
		want = append([]events.HistoryEntry{body.(*events.Compacted).Entry(at.Timestamp.UnixMilli())}, want...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := env.History("s1", 100)
	if diff := cmp.Diff(want, got.Entries); diff != "" || !got.Known || got.Through.Turn != 1 {
		t.Errorf("%+v (-stored +listed):\n%s", got.Through, diff)
	}
	if len(want) != 2 || want[0].Reason != events.ReasonRewind || want[1].Reason != events.ReasonManual {
		t.Fatalf("stored are %+v", want)
	}
	if got := env.History("s1", 1); len(got.Entries) != 1 || got.Older != 1 || got.Entries[0].ID != want[0].ID {
		t.Errorf("the newest: %+v", got)
	}
	if got := env.History("unknown", 1); got.Known || len(got.Entries) != 0 {
		t.Errorf("of an unknown session: %+v", got)
	}
	if e := env.Request(events.SubjectHistory, `{"session":"s1","limit":101}`, nil); e == nil || e.Code != events.CodeOutOfRange {
		t.Errorf("a limit that is too large: %+v", e)
	}
}
