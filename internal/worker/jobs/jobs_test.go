package jobs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// C11: a job at which every worker that took it crashed is reported as failed by the next
// worker, once and without another try. Its session continues.
func TestJobOfCrashedWorkers(t *testing.T) {
	t.Parallel()
	env := workertest.Summarizing(t, nil)
	stop := env.Run("a", observe.Listener{})
	env.Fill("s1", events.LaneBackground)
	stop()
	c, err := env.JS.CreateConsumer(t.Context(), topology.OutcomesStream, jetstream.ConsumerConfig{
		Durable: "summarizer-background", FilterSubject: events.JobFilter(events.LaneBackground),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: 5, // as an older worker configured it
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		m, err := c.Next(jetstream.FetchMaxWait(workertest.WaitLimit))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
	}
	// The fifth delivery goes to a worker that sets no limit, and crashes too.
	if _, err := env.JS.UpdateConsumer(t.Context(), topology.OutcomesStream, jetstream.ConsumerConfig{
		Durable: "summarizer-background", FilterSubject: events.JobFilter(events.LaneBackground),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: -1,
	}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Next(jetstream.FetchMaxWait(workertest.WaitLimit))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Nak(); err != nil {
		t.Fatal(err)
	}
	env.Summarizer = workertest.SummarizerFunc(func(context.Context, summarize.Input) (*events.Summary, error) {
		t.Error("a job at which five workers crashed is tried again")
		return nil, summarize.ErrNothing
	})
	done := make(chan observe.SummaryDone, 64)
	stop = env.Run("b", observe.Listener{SummaryDone: func(d observe.SummaryDone) { done <- d }})
	if d := workertest.Next(t, done, "result of the job"); d.Failure != "dead" || d.Attempt != 6 || d.Model != "" {
		t.Errorf("%+v", d)
	}
	env.AwaitDecided()
	info, err := env.JS.Consumer(t.Context(), topology.OutcomesStream, "summarizer-background")
	if err != nil {
		t.Fatal(err)
	}
	if i := info.CachedInfo(); i.NumAckPending != 0 || i.Config.MaxDeliver != -1 || i.Config.AckWait != 30*time.Second {
		t.Errorf("%d jobs without an ack, %d deliveries, %s", i.NumAckPending, i.Config.MaxDeliver, i.Config.AckWait)
	}
	stop()
	env.WantRedecided()
}

// C11: a worker works on a bounded number of jobs, and an emergency has a slot when those of
// the other lanes are taken.
func TestSlots(t *testing.T) {
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
	started := make(chan observe.SummaryStarted, 64)
	env.Run("a", observe.Listener{SummaryStarted: func(s observe.SummaryStarted) { started <- s }})
	for n := range 7 {
		session := fmt.Sprint("s", n)
		for k := 1; k <= 8; k++ {
			env.Publish(events.KindTurn, session, workertest.BigTurn(k, 100_000, 1_200))
		}
		env.Publish(events.KindCompact, session, []byte(`{"id":"c"}`))
	}
	for range 4 {
		if s := workertest.Next(t, started, "job"); s.Lane != events.LaneNormal {
			t.Errorf("%+v", s)
		}
	}
	env.AwaitDecided()
	wantPending(env, events.LaneNormal, 7, 0) // three wait in the worker, which renews their deliveries
	for k := 1; k <= 30; k++ {
		env.Publish(events.KindTurn, "e", workertest.BigTurn(k, 100_000, 1_200))
	}
	env.Publish(events.KindOverflow, "e", []byte(`{"id":"o","error":"prompt is too long: 12000 tokens > 8000 maximum","status":400}`))
	if s := workertest.Next(t, started, "emergency"); s.Lane != events.LaneEmergency || s.Attempt != 1 {
		t.Errorf("%+v", s)
	}
	close(release)
	for range 3 {
		workertest.Next(t, started, "job that waits")
	}
}

// A consumer of jobs that was deleted is made again while a job is under way, however long that
// takes, and its worker goes on with others.
func TestJobsWithoutConsumer(t *testing.T) {
	t.Parallel()
	env := workertest.Summarizing(t, workertest.SummarizerFunc(func(ctx context.Context, _ summarize.Input) (*events.Summary, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	started := make(chan observe.SummaryStarted, 64)
	env.Run("a", observe.Listener{SummaryStarted: func(s observe.SummaryStarted) { started <- s }})
	request := func(session string) {
		for k := 1; k <= 8; k++ {
			env.Publish(events.KindTurn, session, workertest.BigTurn(k, 100_000, 1_200))
		}
		env.Publish(events.KindCompact, session, []byte(`{"id":"c"}`))
	}
	request("s1")
	workertest.Next(t, started, "job")
	if err := env.JS.DeleteConsumer(t.Context(), topology.OutcomesStream, "summarizer-normal"); err != nil {
		t.Fatal(err)
	}
	request("s2")
	for workertest.Next(t, started, "job of the other session").Address.Session != "s2" { // the first may come again
	}
}

// wantPending waits until workers have so many jobs of a lane, and so many others wait.
func wantPending(env *workertest.Env, lane events.Lane, working, waiting int) {
	env.T.Helper()
	workertest.Until(env.T, fmt.Sprintf("workers have %d jobs of %s, and %d wait", working, lane, waiting), func() bool {
		c, err := env.JS.Consumer(env.T.Context(), topology.OutcomesStream, "summarizer-"+string(lane))
		if err != nil {
			env.T.Fatal(err)
		}
		i := c.CachedInfo()
		return i.NumAckPending == working && int(i.NumPending) == waiting
	})
}

// C5, C11: a busy provider delays a job by the time that it requests, and is called again. When
// an agent waits for the summary, the embedded summarizer makes it at once.
func TestBusyModel(t *testing.T) {
	t.Parallel()
	server := summarizetest.Start(t, summarizetest.TenSections("the model has read it all (turn 1)"))
	server.RetryAfter = time.Second
	server.Script(summarizetest.RateLimited, summarizetest.Good)
	config := server.Config(summarizetest.OpenAI)
	config.Attempts = 1
	m, err := provider.New(config)
	if err != nil {
		t.Fatal(err)
	}
	env := workertest.Summarizing(t, llm.New(m))
	delayed, done, called := make(chan observe.SummaryDelayed, 64), make(chan observe.SummaryDone, 64), make(chan observe.ModelCalled, 64)
	stop := env.Run("a", observe.Listener{
		SummaryDelayed: func(d observe.SummaryDelayed) { delayed <- d },
		SummaryDone:    func(d observe.SummaryDone) { done <- d },
		ModelCalled:    func(a observe.ModelCalled) { called <- a },
	})
	env.Fill("s1", events.LaneBackground)
	if d := workertest.Next(t, delayed, "delay"); d.Pause != time.Second || d.Attempt != 1 || d.Lane != events.LaneBackground {
		t.Errorf("%+v", d)
	}
	if d := workertest.Next(t, done, "summary"); d.Failure != "" || d.Attempt != 2 || d.Model != m.Name() || d.Usage.Input == 0 {
		t.Errorf("%+v", d)
	}
	for _, failed := range []bool{true, false} {
		if a := workertest.Next(t, called, "call"); (a.Err != nil) != failed || a.Model != m.Name() || a.Address.Session != "s1" {
			t.Errorf("%+v", a)
		}
	}
	server.Script(summarizetest.RateLimited)
	env.Publish(events.KindCompact, "s1", []byte(`{"id":"c"}`))
	if d := workertest.Next(t, done, "summary for a manual compaction"); d.Failure != "" || d.Attempt != 1 || d.Model != extract.Model {
		t.Errorf("%+v", d)
	}
	env.AwaitDecided()
	stop()
	env.WantRedecided()
}
