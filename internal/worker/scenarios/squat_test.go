package scenarios_test

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
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// squat publishes a turn of another tenant under a message id, which the server then treats as
// used for all tenants.
func squat(env *workertest.Env, id string) {
	env.T.Helper()
	_, err := env.JS.Publish(context.Background(), "session.turn.evil.x", []byte(`{"messages":[{"role":"user","content":"mine"}]}`), jetstream.WithMsgID(id))
	if err != nil {
		env.T.Fatal(err)
	}
}

// count counts the events of a kind and a session in the log.
func count(env *workertest.Env, k events.Kind, session string) (n int) {
	env.T.Helper()
	filter := "log.*." + string(k) + ".default." + session
	err := stream.ReadStream(env.T.Context(), env.JS, topology.LogStream, filter, 1, 0, func(jetstream.Msg, uint64) error { n++; return nil })
	if err != nil {
		env.T.Fatal(err)
	}
	return n
}

// The id of a job follows from its tenant, session and sequence. When another tenant has published
// a turn under this id, the summary is stored all the same, once.
func TestSquattedSummary(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	env := workertest.Summarizing(t, workertest.SummarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		select {
		case <-release:
			return extract.New().Summarize(ctx, in)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
	started, done, taken := make(chan observe.SummaryStarted, 64), make(chan observe.SummaryDone, 64), make(chan error, 64)
	stop := env.Run("a", observe.Listener{
		SummaryStarted: func(s observe.SummaryStarted) { started <- s },
		SummaryDone:    func(d observe.SummaryDone) { done <- d },
		Retrying:       func(i observe.Retrying) { taken <- i.Err },
	})
	env.Fill("s1", events.LaneBackground)
	job := workertest.Next(t, started, "job").Job
	squat(env, job)
	close(release)
	if d := workertest.Next(t, done, "summary"); d.Job != job || d.Failure != "" {
		t.Errorf("%+v", d)
	}
	if n := count(env, events.KindSummary, "s1"); n != 1 {
		t.Errorf("the log contains %d summaries", n)
	}
	if err, ok := errors.AsType[*stream.IDTakenError](workertest.Next(t, taken, "report of the id")); !ok || err.ID != job {
		t.Errorf("reported: %v", err)
	}
	env.AwaitDecided()
	stop()
	env.WantRedecided()
}

// An event that several workers publish under one id is stored once. If the id was used on another
// subject, also by an erased message, it is stored under another id.
func TestPublishOnce(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	publish := func(id string) *stream.IDTakenError {
		m := &nats.Msg{Subject: "session.idle.default.s1", Data: []byte(`{"since":1}`), Header: nats.Header{nats.MsgIdHdr: {id}}}
		taken, err := stream.PublishOnce(t.Context(), env.JS, m)
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
	squat(env, "two")
	squat(env, "three")
	stream, err := env.JS.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), env.State(topology.LogStream).Last); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"two", "three"} {
		if taken := publish(id); taken == nil || taken.ID != id || !strings.Contains(taken.Error(), "stored under the id "+taken.Stored) || taken.Stored == "" {
			t.Errorf("%s: %+v", id, taken)
		}
	}
	if n := count(env, events.KindIdle, "s1"); n != 3 {
		t.Errorf("%d events of 3 are stored", n)
	}
}

// A tenant that publishes under the id of another session's idle event does not prevent the
// compaction of that session.
func TestSquattedIdle(t *testing.T) {
	dir := t.TempDir()
	workertest.EmptyPools()
	defer workertest.EmptyPools()
	ats.Register()
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		env := workertest.Open(t, embedded.Config{Dir: dir, Durability: embedded.DurablePower}, topology.Config{Partitions: 1})
		defer env.Stop()
		policy, _ := policy.Preset("claude")
		policy.Summarize.Enabled = false
		env.Config, env.MarkerEvery, env.LeaseTTL = workertest.NewConfig(t, policy), time.Minute, time.Hour // few renewals in hours
		stop := env.Run("a", observe.Listener{})
		env.Publish(events.KindTurn, "s", toolTurn(8))
		time.Sleep(58 * time.Minute)
		for range 20 * 60 {
			time.Sleep(time.Second)
			squat(env, "idle-default.s-1")
		}
		if n := count(env, events.KindIdle, "s"); n == 0 {
			t.Error("no session.idle is stored in the 18 minutes after the hour")
		}
		stop()
	})
}

// The id that another tenant has used first keeps no event from being stored, and it counts once.
func TestAgentsSquattedID(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	squat(env, "t1")
	status, got := e.Post("s1", "turns", string(workertest.Turn(1)))
	again, same := e.Post("s1", "turns", string(workertest.Turn(1)))
	if status != 200 || got.Duplicate || again != 200 || !same.Duplicate || same.Seq != got.Seq {
		t.Errorf("%d %+v, then %d %+v", status, got, again, same)
	}
}
