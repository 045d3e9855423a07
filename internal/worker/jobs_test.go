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
	"compactd/internal/worker"
)

// summarizing returns a world whose sessions are summarized.
func summarizing(t *testing.T, s summarize.Summarizer) *world {
	w := newWorld(t, t.TempDir())
	w.config, w.summarizer = newConfig(t, compaction.DefaultPolicy()), s
	return w
}

// fill publishes turns of a session until it has a job in a lane.
func (w *world) fill(session string, lane events.Lane) {
	w.t.Helper()
	for n := 1; n <= 40; n++ {
		w.publish(events.KindTurn, session, bigTurn(n, 8_000, 1_200))
		w.settle()
		if slices.Contains(w.jobs(session), lane) {
			return
		}
	}
	w.t.Fatalf("no %s job in 40 turns, but %v", lane, w.jobs(session))
}

// jobs lists the lanes of a session's jobs.
func (w *world) jobs(session string) []events.Lane {
	w.t.Helper()
	var out []events.Lane
	err := stream.ReadStream(w.t.Context(), w.js, topology.OutcomesStream, "out.*.job.*.default."+session, 1, 0, func(m jetstream.Msg, _ uint64) error {
		_, lane, err := events.ParseJob(m.Subject())
		out = append(out, lane)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// next waits for what a listener tells.
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

// summarizerFunc is a summarizer.
type summarizerFunc func(context.Context, summarize.Input) (*events.Summary, error)

func (f summarizerFunc) Summarize(ctx context.Context, in summarize.Input) (*events.Summary, error) {
	return f(ctx, in)
}

// C11: a job whose deliveries all ended with their worker is told as failed by the
// next worker, once, without another try; its session goes on.
func TestDeadJob(t *testing.T) {
	t.Parallel()
	w := summarizing(t, nil)
	stop := w.run("a", worker.Listener{})
	w.fill("s1", events.LaneBackground)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c, err := w.js.CreateConsumer(t.Context(), topology.OutcomesStream, jetstream.ConsumerConfig{
		Durable: "summarizer-background", FilterSubject: events.JobFilter(events.LaneBackground),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: 5, // as an older worker had it
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
	// The fifth has a worker that knows the job's end, and dies at it all the same.
	if _, err := w.js.UpdateConsumer(t.Context(), topology.OutcomesStream, jetstream.ConsumerConfig{
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
	w.summarizer = summarizerFunc(func(context.Context, summarize.Input) (*events.Summary, error) {
		t.Error("what five workers died of is tried again")
		return nil, summarize.ErrNothing
	})
	done := make(chan worker.SummaryDone, 64)
	stop = w.run("b", worker.Listener{SummaryDone: func(d worker.SummaryDone) { done <- d }})
	if d := next(t, done, "result of the dead job"); d.Failure != "dead" || d.Attempt != 6 || d.Model != "" {
		t.Errorf("%+v", d)
	}
	w.settle()
	info, err := w.js.Consumer(t.Context(), topology.OutcomesStream, "summarizer-background")
	if err != nil {
		t.Fatal(err)
	}
	if i := info.CachedInfo(); i.NumAckPending != 0 || i.Config.MaxDeliver != -1 || i.Config.AckWait != 30*time.Second {
		t.Errorf("%d jobs are not settled, %d deliveries, %s", i.NumAckPending, i.Config.MaxDeliver, i.Config.AckWait)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantAsLogSays()
}

// C11: a worker takes no more jobs than it works on, so that none grows old in a
// buffer; and when all slots of the others are taken, an emergency is worked on.
func TestSlots(t *testing.T) {
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
	started := make(chan worker.SummaryStarted, 64)
	stop := w.run("a", worker.Listener{SummaryStarted: func(s worker.SummaryStarted) { started <- s }})
	for n := range 7 {
		session := fmt.Sprint("s", n)
		for k := 1; k <= 8; k++ {
			w.publish(events.KindTurn, session, bigTurn(k, 100_000, 1_200))
		}
		w.publish(events.KindCompact, session, []byte(`{"id":"c"}`))
	}
	for range 4 {
		if s := next(t, started, "job"); s.Lane != events.LaneNormal {
			t.Errorf("%+v", s)
		}
	}
	w.settle()
	w.wantPending(events.LaneNormal, 7, 0) // three wait in the worker, which says that they live
	for k := 1; k <= 30; k++ {
		w.publish(events.KindTurn, "e", bigTurn(k, 100_000, 1_200))
	}
	w.publish(events.KindOverflow, "e", []byte(`{"id":"o","error":"prompt is too long: 12000 tokens > 8000 maximum","status":400}`))
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

// wantPending compares the jobs of a lane that workers have, and those that wait.
func (w *world) wantPending(lane events.Lane, working, waiting int) {
	w.t.Helper()
	c, err := w.js.Consumer(w.t.Context(), topology.OutcomesStream, "summarizer-"+string(lane))
	if err != nil {
		w.t.Fatal(err)
	}
	if i := c.CachedInfo(); i.NumAckPending != working || int(i.NumPending) != waiting {
		w.t.Errorf("%s: workers have %d jobs, %d wait; want %d and %d", lane, i.NumAckPending, i.NumPending, working, waiting)
	}
}

// C5, C11: a provider that is busy delays a job by what it asks for, and is asked
// again; one that stays so leaves the summary to the embedded summarizer, at once
// where somebody waits.
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
	w := summarizing(t, llm.New([]model.Model{m}, nil))
	delayed, done, asked := make(chan worker.SummaryDelayed, 64), make(chan worker.SummaryDone, 64), make(chan worker.ModelCalled, 64)
	stop := w.run("a", worker.Listener{
		SummaryDelayed: func(d worker.SummaryDelayed) { delayed <- d },
		SummaryDone:    func(d worker.SummaryDone) { done <- d },
		ModelCalled:    func(a worker.ModelCalled) { asked <- a },
	})
	w.fill("s1", events.LaneBackground)
	if d := next(t, delayed, "delay"); d.Pause != time.Second || d.Attempt != 1 || d.Lane != events.LaneBackground {
		t.Errorf("%+v", d)
	}
	if d := next(t, done, "summary"); d.Failure != "" || d.Attempt != 2 || d.Model != m.Name() || d.Usage.Input == 0 {
		t.Errorf("%+v", d)
	}
	for _, failed := range []bool{true, false} {
		if a := next(t, asked, "call"); (a.Err != nil) != failed || a.Model != m.Name() || a.Address.Session != "s1" {
			t.Errorf("%+v", a)
		}
	}
	server.Script(summarizetest.RateLimited)
	w.publish(events.KindCompact, "s1", []byte(`{"id":"c"}`))
	if d := next(t, done, "summary for a person"); d.Failure != "" || d.Attempt != 1 || d.Model != extract.Model {
		t.Errorf("%+v", d)
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantAsLogSays()
}

// tenSections is a model that writes what it is asked for.
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
func (w *world) jobsDone() {
	w.t.Helper()
	until(w.t, "all jobs have ended", func() bool {
		busy := false
		for _, lane := range events.Lanes {
			c, err := w.js.Consumer(w.t.Context(), topology.OutcomesStream, "summarizer-"+string(lane))
			if err != nil {
				w.t.Fatal(err)
			}
			i := c.CachedInfo()
			busy = busy || i.NumPending > 0 || i.NumAckPending > 0
		}
		return !busy
	})
}
