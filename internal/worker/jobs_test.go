package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/worker/observe"
)

// summarizing returns an environment whose sessions are summarized.
func summarizing(t *testing.T, s summarize.Summarizer) *testEnv {
	env := newEnv(t, t.TempDir())
	env.config, env.summarizer = newConfig(t, compaction.DefaultPolicy()), s
	return env
}

// fill publishes turns of a session until it has a job in a lane.
func (env *testEnv) fill(session string, lane events.Lane) {
	env.t.Helper()
	for n := 1; n <= 40; n++ {
		env.publish(events.KindTurn, session, bigTurn(n, 8_000, 1_200))
		env.awaitDecided()
		if slices.Contains(env.jobs(session), lane) {
			return
		}
	}
	env.t.Fatalf("no %s job in 40 turns, but %v", lane, env.jobs(session))
}

// jobs lists the lanes of a session's jobs.
func (env *testEnv) jobs(session string) []events.Lane {
	env.t.Helper()
	var out []events.Lane
	err := stream.ReadStream(env.t.Context(), env.js, topology.OutcomesStream, "out.*.job.*.default."+session, 1, 0, func(m jetstream.Msg, _ uint64) error {
		_, lane, err := events.ParseJob(m.Subject())
		out = append(out, lane)
		return err
	})
	if err != nil {
		env.t.Fatal(err)
	}
	return out
}

// next waits for the next value of a channel that a listener fills.
func next[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitLimit):
		t.Fatalf("no %s in time", what)
		panic("unreachable")
	}
}

// summarizerFunc is a function as a summarizer.
type summarizerFunc func(context.Context, summarize.Input) (*events.Summary, error)

func (f summarizerFunc) Summarize(ctx context.Context, in summarize.Input) (*events.Summary, error) {
	return f(ctx, in)
}

// C11: a job at which every worker that took it crashed is reported as failed by the next
// worker, once and without another try. Its session continues.
func TestJobOfCrashedWorkers(t *testing.T) {
	t.Parallel()
	env := summarizing(t, nil)
	stop := env.run("a", observe.Listener{})
	env.fill("s1", events.LaneBackground)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c, err := env.js.CreateConsumer(t.Context(), topology.OutcomesStream, jetstream.ConsumerConfig{
		Durable: "summarizer-background", FilterSubject: events.JobFilter(events.LaneBackground),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: 5, // as an older worker configured it
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		m, err := c.Next(jetstream.FetchMaxWait(waitLimit))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
	}
	// The fifth delivery goes to a worker that sets no limit, and crashes too.
	if _, err := env.js.UpdateConsumer(t.Context(), topology.OutcomesStream, jetstream.ConsumerConfig{
		Durable: "summarizer-background", FilterSubject: events.JobFilter(events.LaneBackground),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: -1,
	}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Next(jetstream.FetchMaxWait(waitLimit))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Nak(); err != nil {
		t.Fatal(err)
	}
	env.summarizer = summarizerFunc(func(context.Context, summarize.Input) (*events.Summary, error) {
		t.Error("a job at which five workers crashed is tried again")
		return nil, summarize.ErrNothing
	})
	done := make(chan observe.SummaryDone, 64)
	stop = env.run("b", observe.Listener{SummaryDone: func(d observe.SummaryDone) { done <- d }})
	if d := next(t, done, "result of the job"); d.Failure != "dead" || d.Attempt != 6 || d.Model != "" {
		t.Errorf("%+v", d)
	}
	env.awaitDecided()
	info, err := env.js.Consumer(t.Context(), topology.OutcomesStream, "summarizer-background")
	if err != nil {
		t.Fatal(err)
	}
	if i := info.CachedInfo(); i.NumAckPending != 0 || i.Config.MaxDeliver != -1 || i.Config.AckWait != 30*time.Second {
		t.Errorf("%d jobs without an ack, %d deliveries, %s", i.NumAckPending, i.Config.MaxDeliver, i.Config.AckWait)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	env.wantRedecided()
}

// C11: a worker works on a bounded number of jobs, and an emergency has a slot when those of
// the other lanes are taken.
func TestSlots(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	env := summarizing(t, summarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		select {
		case <-release:
			return extract.New().Summarize(ctx, in)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
	started := make(chan observe.SummaryStarted, 64)
	stop := env.run("a", observe.Listener{SummaryStarted: func(s observe.SummaryStarted) { started <- s }})
	for n := range 7 {
		session := fmt.Sprint("s", n)
		for k := 1; k <= 8; k++ {
			env.publish(events.KindTurn, session, bigTurn(k, 100_000, 1_200))
		}
		env.publish(events.KindCompact, session, []byte(`{"id":"c"}`))
	}
	for range 4 {
		if s := next(t, started, "job"); s.Lane != events.LaneNormal {
			t.Errorf("%+v", s)
		}
	}
	env.awaitDecided()
	env.wantPending(events.LaneNormal, 7, 0) // three wait in the worker, which renews their deliveries
	for k := 1; k <= 30; k++ {
		env.publish(events.KindTurn, "e", bigTurn(k, 100_000, 1_200))
	}
	env.publish(events.KindOverflow, "e", []byte(`{"id":"o","error":"prompt is too long: 12000 tokens > 8000 maximum","status":400}`))
	if s := next(t, started, "emergency"); s.Lane != events.LaneEmergency || s.Attempt != 1 {
		t.Errorf("%+v", s)
	}
	close(release)
	for range 3 {
		next(t, started, "job that waits")
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// A consumer of jobs that was deleted is made again while a job is under way, however long that
// takes, and its worker goes on with others.
func TestJobsWithoutConsumer(t *testing.T) {
	t.Parallel()
	env := summarizing(t, summarizerFunc(func(ctx context.Context, _ summarize.Input) (*events.Summary, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	started := make(chan observe.SummaryStarted, 64)
	stop := env.run("a", observe.Listener{SummaryStarted: func(s observe.SummaryStarted) { started <- s }})
	request := func(session string) {
		for k := 1; k <= 8; k++ {
			env.publish(events.KindTurn, session, bigTurn(k, 100_000, 1_200))
		}
		env.publish(events.KindCompact, session, []byte(`{"id":"c"}`))
	}
	request("s1")
	next(t, started, "job")
	if err := env.js.DeleteConsumer(t.Context(), topology.OutcomesStream, "summarizer-normal"); err != nil {
		t.Fatal(err)
	}
	request("s2")
	for next(t, started, "job of the other session").Address.Session != "s2" { // the first may come again
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// wantPending waits until workers have so many jobs of a lane, and so many others wait.
func (env *testEnv) wantPending(lane events.Lane, working, waiting int) {
	env.t.Helper()
	for end := time.Now().Add(waitLimit); ; time.Sleep(10 * time.Millisecond) {
		c, err := env.js.Consumer(env.t.Context(), topology.OutcomesStream, "summarizer-"+string(lane))
		if err != nil {
			env.t.Fatal(err)
		}
		i := c.CachedInfo()
		if i.NumAckPending == working && int(i.NumPending) == waiting {
			return
		}
		if time.Now().After(end) {
			env.t.Errorf("%s: workers have %d jobs, %d wait; want %d and %d", lane, i.NumAckPending, i.NumPending, working, waiting)
			return
		}
	}
}

// C5, C11: a busy provider delays a job by the time that it requests, and is called again. When
// an agent waits for the summary, the embedded summarizer makes it at once.
func TestBusyModel(t *testing.T) {
	t.Parallel()
	server := summarizetest.Start(t, tenSections)
	server.RetryAfter = time.Second
	server.Script(summarizetest.RateLimited, summarizetest.Good)
	config := server.Config(summarizetest.OpenAI)
	config.Attempts = 1
	m, err := provider.New(config)
	if err != nil {
		t.Fatal(err)
	}
	env := summarizing(t, llm.New([]model.Model{m}, nil))
	delayed, done, called := make(chan observe.SummaryDelayed, 64), make(chan observe.SummaryDone, 64), make(chan observe.ModelCalled, 64)
	stop := env.run("a", observe.Listener{
		SummaryDelayed: func(d observe.SummaryDelayed) { delayed <- d },
		SummaryDone:    func(d observe.SummaryDone) { done <- d },
		ModelCalled:    func(a observe.ModelCalled) { called <- a },
	})
	env.fill("s1", events.LaneBackground)
	if d := next(t, delayed, "delay"); d.Pause != time.Second || d.Attempt != 1 || d.Lane != events.LaneBackground {
		t.Errorf("%+v", d)
	}
	if d := next(t, done, "summary"); d.Failure != "" || d.Attempt != 2 || d.Model != m.Name() || d.Usage.Input == 0 {
		t.Errorf("%+v", d)
	}
	for _, failed := range []bool{true, false} {
		if a := next(t, called, "call"); (a.Err != nil) != failed || a.Model != m.Name() || a.Address.Session != "s1" {
			t.Errorf("%+v", a)
		}
	}
	server.Script(summarizetest.RateLimited)
	env.publish(events.KindCompact, "s1", []byte(`{"id":"c"}`))
	if d := next(t, done, "summary for a manual compaction"); d.Failure != "" || d.Attempt != 1 || d.Model != extract.Model {
		t.Errorf("%+v", d)
	}
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	env.wantRedecided()
}

// tenSections is the answer of a model that writes all sections of the prompt.
func tenSections(summarizetest.Prompt) string {
	var b strings.Builder
	b.WriteString("<summary>\n")
	for _, title := range []string{
		"Goal and intent", "Constraints and rules", "Decisions", "Concepts and discoveries", "Files and data", "Errors and fixes",
		"Open tasks and questions", "How the task evolved", "Current work", "Next step",
	} {
		b.WriteString("## " + title + "\n- the model has read it all (turn 1)\n")
	}
	return b.String() + "</summary>\n"
}

// jobsDone waits until every job has ended.
func (env *testEnv) jobsDone() {
	env.t.Helper()
	until(env.t, "all jobs have ended", func() bool {
		busy := false
		for _, lane := range events.Lanes {
			c, err := env.js.Consumer(env.t.Context(), topology.OutcomesStream, "summarizer-"+string(lane))
			if err != nil {
				env.t.Fatal(err)
			}
			i := c.CachedInfo()
			busy = busy || i.NumPending > 0 || i.NumAckPending > 0
		}
		return !busy
	})
}
