package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
)

// squat publishes a turn of another tenant under a message id, which the server then
// remembers for all tenants.
func (w *world) squat(id string) {
	w.t.Helper()
	_, err := w.js.Publish(context.Background(), "session.turn.evil.x", []byte(`{"messages":[{"role":"user","content":"mine"}]}`), jetstream.WithMsgID(id))
	if err != nil {
		w.t.Fatal(err)
	}
}

// count counts what the log holds of a kind of event of a session.
func (w *world) count(k events.Kind, session string) (n int) {
	w.t.Helper()
	filter := "log.*." + string(k) + ".default." + session
	err := stream.ReadStream(w.t.Context(), w.js, topology.LogStream, filter, 1, 0, func(jetstream.Msg, uint64) error { n++; return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// The id of a job follows from its tenant, session and sequence. A tenant that has
// published a turn under it does not make the summary vanish, and a summary that two
// workers publish is stored once.
func TestSquattedSummary(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := summarizing(t, summarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		select {
		case <-release:
			return extract.New().Summarize(ctx, in)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
	started, done, taken := make(chan worker.SummaryStarted, 64), make(chan worker.SummaryDone, 64), make(chan error, 64)
	stop := w.run("a", worker.Listener{
		SummaryStarted: func(s worker.SummaryStarted) { started <- s },
		SummaryDone:    func(d worker.SummaryDone) { done <- d },
		Retrying:       func(i worker.Retrying) { taken <- i.Err },
	})
	w.fill("s1", events.LaneBackground)
	job := next(t, started, "job").Job
	w.squat(job)
	close(release)
	if d := next(t, done, "summary"); d.Job != job || d.Failure != "" {
		t.Errorf("%+v", d)
	}
	if n := w.count(events.KindSummary, "s1"); n != 1 {
		t.Errorf("the log holds %d summaries", n)
	}
	if err, ok := errors.AsType[*stream.IDTakenError](next(t, taken, "report of the id")); !ok || err.ID != job {
		t.Errorf("reported: %v", err)
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantAsLogSays()
}

// An event of workers is stored once under an id that several of them use, and under
// another where the id is that of another subject, also of one that was erased.
func TestPublishOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	a := events.Address{Tenant: "default", Session: "s1"}
	logged := events.Logged(events.PartitionOf(a, w.streams.Partitions), events.KindIdle, a)
	publish := func(id string) *stream.IDTakenError {
		m := &nats.Msg{Subject: "session.idle.default.s1", Data: []byte(`{"since":1}`), Header: nats.Header{nats.MsgIdHdr: {id}}}
		taken, err := stream.PublishOnce(t.Context(), w.js, m, logged)
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	for range 2 {
		if taken := publish("one"); taken != nil {
			t.Errorf("an event of ours: %v", taken)
		}
	}
	w.squat("two")
	w.squat("three")
	stream, err := w.js.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), w.state(topology.LogStream).Last); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"two", "three"} {
		if taken := publish(id); taken == nil || taken.ID != id || !strings.Contains(taken.Error(), id) {
			t.Errorf("%s: %+v", id, taken)
		}
	}
	if n := w.count(events.KindIdle, "s1"); n != 3 {
		t.Errorf("%d events of 3 are stored", n)
	}
}

// A tenant that keeps the id of a session's idleness in use does not keep the session
// from being compacted.
func TestSquattedIdle(t *testing.T) {
	dir := t.TempDir()
	emptyPools()
	defer emptyPools()
	ats.Register()
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		w := openWorld(t, embedded.Config{Dir: dir, Durability: embedded.DurablePower}, topology.Config{Partitions: 1})
		defer w.stop()
		policy, _ := compaction.Preset("claude")
		policy.Summarize.Enabled = false
		w.config, w.markEvery = newConfig(t, policy), time.Minute
		stop := w.run("a", worker.Listener{})
		w.publish(events.KindTurn, "s", toolTurn(8))
		time.Sleep(58 * time.Minute)
		for range 20 * 60 {
			time.Sleep(time.Second)
			w.squat("idle-default.s-1")
		}
		if n := w.count(events.KindIdle, "s"); n == 0 {
			t.Error("no session.idle is stored in the 18 minutes after the hour")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
