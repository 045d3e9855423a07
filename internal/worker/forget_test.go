package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/erase"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
)

// victim is the session that is forgotten, and what nobody may find of it.
const (
	victim = "victim"
	secret = "s3cr3t-0f-th3-v1ct1m"
)

// secretTurn is a turn of the victim, full of it.
func secretTurn(n int) []byte {
	return bytes.ReplaceAll(agentTurn(1, n), []byte("word"), []byte(secret))
}

// holders lists the files under some folders that hold a text.
func holders(t *testing.T, text string, dirs ...string) (out []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed meanwhile
			}
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if bytes.Contains(data, []byte(text)) {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// until waits for what a process does to files, which nothing tells of.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !ok(); pause(t, time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// forget erases a session and waits until that is told.
func (w *world) forget(session string) (events.Forgotten, events.Erased) {
	w.t.Helper()
	heard := make(chan *nats.Msg, 10)
	a := events.Address{Tenant: "default", Session: session}
	for _, k := range []events.Kind{events.KindForgotten, events.KindErased} {
		if _, err := w.conn.ChanSubscribe(events.Published(k, a), heard); err != nil {
			w.t.Fatal(err)
		}
	}
	seq := w.publish(events.KindForget, session, []byte(`{"v":1,"id":"forget-it"}`))
	first, second := next(w.t, heard, "answer"), next(w.t, heard, "confirmation")
	var f events.Forgotten
	var e events.Erased
	if err := events.Unmarshal(first.Data, &f); err != nil {
		w.t.Fatal(err)
	}
	if err := events.Unmarshal(second.Data, &e); err != nil {
		w.t.Fatal(err)
	}
	if f.Seq != seq || e.Seq != seq || f.CausedBy.ID != "forget-it" {
		w.t.Errorf("forget at %d was answered by %s and %s", seq, first.Data, second.Data)
	}
	return f, e
}

// answered waits until every job has its summary, and all is decided.
func (w *world) answered() {
	w.t.Helper()
	count := func(from, filter string) (n int) {
		err := stream.ReadStream(w.t.Context(), w.js, from, filter, 1, 0, func(jetstream.Msg, uint64) error { n++; return nil })
		if err != nil {
			w.t.Fatal(err)
		}
		return n
	}
	w.settle()
	until(w.t, "every job has its summary", func() bool {
		return count(topology.OutcomesStream, "out.*.job.>") == count(topology.LogStream, "log.*.summary.>")
	})
	w.settle()
}

// noRetry fails a test whose worker retries a step. A missed heartbeat is no failure: a
// server on a busy machine is late with it.
func noRetry(t *testing.T) func(worker.Retrying) {
	return func(e worker.Retrying) {
		if !errors.Is(e.Err, jetstream.ErrNoHeartbeat) {
			t.Errorf("%s: %v", e.Step, e.Err)
		}
	}
}

// E8: after a session.forget no byte of the session is in any file of server and
// worker. What was told to all others is as it was, what will be told follows from
// the log as it is now, from checkpoints and from zero, and the session may begin
// anew.
func TestForget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.ledgers, w.checkpointEvery = t.TempDir(), 1
	w.config, w.summarizer = newConfig(t, compaction.DefaultPolicy()), extract.New()
	stop := w.run("a", worker.Listener{})
	for n := 1; n <= 12; n++ {
		w.rounds(6, n, n+1)()
		w.publish(events.KindTurn, victim, secretTurn(n))
	}
	w.answered()
	until(t, "the victim is in the log and in a file", func() bool {
		return len(holders(t, secret, dir)) > 0 && len(holders(t, victim, w.ledgers)) > 0
	})
	before := w.toldBySession()
	_, e := w.forget(victim)
	if e.Events < 12 || e.Outcomes == 0 || e.Resumed {
		t.Errorf("erased: %+v", e)
	}
	if found := holders(t, secret, dir, w.ledgers); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
	if found := holders(t, victim, w.ledgers); len(found) > 0 {
		t.Errorf("the name is in %q", found)
	}
	after := w.toldBySession()
	for p, was := range before {
		if p.address.Session != victim {
			if d := cmp.Diff(was, after[p], cmp.AllowUnexported(outcome{})); d != "" {
				t.Errorf("what was told to %s is another: %s", p.address, d)
			}
		}
	}
	w.answered()
	w.wantAsLogSays()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	ledgers := w.ledgers
	for i, dir := range []string{"", ledgers} { // from zero, and from checkpoints
		w.ledgers = dir
		stop = w.run([]string{"b", "c"}[i], worker.Listener{Retrying: noRetry(t)})
		w.rounds(6, 13+6*i, 19+6*i)()
		w.publish(events.KindTurn, victim, []byte(`{"turn":13,"messages":[{"role":"user","content":"still there?"}]}`))
		w.publish(events.KindTurn, victim, []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"anew"}]}`))
		w.answered()
		w.wantAsLogSays()
		if i == 1 {
			w.forget(victim)
			w.wantAsLogSays()
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	w.stop()
	if found := holders(t, secret, dir, ledgers); len(found) > 0 {
		t.Errorf("after the stop the secret is in %q", found)
	}
}

// A summary that was under way when its session was forgotten is not stored:
// it would quote what is erased.
func TestForgetWhileSummarized(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir)
	asked, goOn := make(chan struct{}, 10), make(chan struct{})
	w.config = newConfig(t, compaction.DefaultPolicy())
	w.summarizer = summarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		asked <- struct{}{}
		<-goOn
		return extract.New().Summarize(ctx, in)
	})
	stop := w.run("a", worker.Listener{})
	for n := 1; n <= 12; n++ {
		w.publish(events.KindTurn, victim, secretTurn(n))
	}
	next(t, asked, "job")
	w.forget(victim)
	close(goOn)
	w.publish(events.KindTurn, "other", turn(1))
	w.settle()
	if err := stop(); err != nil { // which waits for the pool
		t.Fatal(err)
	}
	subjects := func(o []outcome) (out []string) {
		for _, x := range o {
			out = append(out, x.subject)
		}
		return out
	}
	for p, told := range w.toldBySession() {
		if p.address.Session == victim && len(told) != 1 {
			t.Errorf("of the victim there is %q", subjects(told))
		}
	}
	if found := holders(t, secret, dir); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
}

// A job that was asked for before a session.forget and is taken up after it, while
// the texts are still there, makes no summary: it would outlive them.
func TestForgetBeforeSummarized(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir)
	asked, goOn := make(chan struct{}, 10), make(chan struct{})
	started, held, read := make(chan uint64, 10), make(chan struct{}, 10), make(chan struct{})
	w.config = newConfig(t, compaction.DefaultPolicy())
	w.summarizer = summarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		select {
		case <-goOn:
			return extract.New().Summarize(ctx, in)
		default:
		}
		asked <- struct{}{}
		<-goOn
		return nil, &summarize.RetryAfterError{After: time.Millisecond, Err: errors.New("busy")}
	})
	last := make(chan compaction.Seq, 1) // nothing is read behind it
	l := worker.Listener{
		SummaryStarted: func(e worker.SummaryStarted) { started <- e.Attempt },
		Applied: func(e worker.Applied) {
			select {
			case seq := <-last:
				if last <- seq; e.Seq >= seq {
					held <- struct{}{}
					<-read
				}
			default:
			}
		},
	}
	stop := w.run("a", l)
	for n := 1; n <= 12; n++ {
		w.publish(events.KindTurn, victim, secretTurn(n))
	}
	next(t, asked, "job")
	w.settle()
	last <- compaction.Seq(w.state(topology.LogStream).Last + 1)
	w.publish(events.KindTurn, victim, secretTurn(13))
	next(t, held, "turn that holds up the reading")
	erased := make(chan *nats.Msg, 1)
	if _, err := w.conn.ChanSubscribe(events.Published(events.KindErased, events.Address{Tenant: "default", Session: victim}), erased); err != nil {
		t.Fatal(err)
	}
	w.publish(events.KindForget, victim, []byte(`{"v":1,"id":"forget-it"}`))
	close(goOn)
	for next(t, started, "try") < 2 {
	}
	w.jobsDone()
	close(read)
	next(t, erased, "confirmation")
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if found := holders(t, secret, dir); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
}

// refused publishes what is no turn, and waits for the answer, which is committed
// with a marker.
func (w *world) refused(session string) {
	w.t.Helper()
	heard := make(chan *nats.Msg, 1)
	if _, err := w.conn.ChanSubscribe(events.Published(events.KindRejected, events.Address{Tenant: "default", Session: session}), heard); err != nil {
		w.t.Fatal(err)
	}
	w.publish(events.KindTurn, session, []byte(`{"messages":7}`))
	next(w.t, heard, "rejection")
}

// E8, P10: the only markers that say which config events were decided under go with
// the outcomes that carried them; other sessions are replayed under it all the same.
func TestForgetKeepsConfigs(t *testing.T) {
	t.Parallel()
	later := compaction.DefaultPolicy()
	later.Profile, later.Summarize.Enabled = "seed", false
	var told [2][]outcome
	for i, dir := range []string{t.TempDir(), ""} {
		w := openWorld(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
		w.ledgers, w.checkpointEvery, w.markEvery = dir, 1, time.Hour // no marker but those of outcomes
		first := w.config
		for run, c := range []*compaction.Config{first, newConfig(t, later), newConfig(t, later)} {
			w.config = c
			stop := w.run(fmt.Sprintf("run-%d", run), worker.Listener{Retrying: noRetry(t)})
			switch run {
			case 0:
				for n := 1; n <= 6; n++ {
					w.publish(events.KindTurn, "s", usageTurn(n))
				}
				w.refused(victim)
			case 1:
				if _, e := w.forget(victim); e.Outcomes != 1 {
					t.Errorf("erased %+v; want the one rejection", e)
				}
			case 2:
				for n := 7; n <= 20; n++ {
					w.publish(events.KindTurn, "s", usageTurn(n))
				}
				w.refused("end")
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		told[i] = w.toldBySession()[place{partition: 0, address: events.Address{Tenant: "default", Session: "s"}}]
	}
	if d := cmp.Diff(told[0], told[1], cmp.AllowUnexported(outcome{})); d != "" || len(told[0]) == 0 {
		t.Errorf("%d outcomes; from a checkpoint and from the log (-checkpoint +log):\n%s", len(told[0]), d)
	}
}

// E8: ledger files that a worker keeps of partitions it has no more are rid of the
// session too: when the owner tells that it is erased, and at the next start.
func TestForgetInOldFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	w.checkpointEvery = 1
	old, r := t.TempDir(), newRoll(t)
	w.ledgers = old
	a := w.start("a", r.listener("a"))
	r.await(map[string]int{"a": 4})
	names := make([]string, 16) // of sessions in every partition
	for i := range names {
		names[i] = fmt.Sprintf("gone-%d", i)
		w.publish(events.KindTurn, names[i], turn(1))
	}
	w.settle()
	w.ledgers = t.TempDir()
	b := w.start("b", r.listener("b"))
	r.await(map[string]int{"a": 2, "b": 2})
	for _, name := range names[:8] {
		w.forget(name)
	}
	until(t, "the names are gone from the old files", func() bool {
		return len(holders(t, "gone-0", old))+len(holders(t, "gone-7", old)) == 0
	})
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	r.await(map[string]int{"b": 4})
	if len(holders(t, "gone-", old)) == 0 {
		t.Fatal("no file was left behind: the test is blind")
	}
	for _, name := range names[8:] {
		w.forget(name)
	}
	w.ledgers = old
	a = w.start("a", r.listener("a"))
	r.await(map[string]int{"a": 2, "b": 2})
	if found := holders(t, "gone-", old); len(found) > 0 {
		t.Errorf("names are still in %q", found)
	}
	for _, x := range []*running{a, b} {
		if err := x.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if found := holders(t, "gone-", old, w.ledgers); len(found) > 0 {
		t.Errorf("after the stop names are in %q", found)
	}
}

// E8, P6: a hand-over does not wait for an erasure, which may be overwriting a large
// file; the next owner does it.
func TestHandOverDuringErasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	w.ledgers, w.checkpointEvery = t.TempDir(), 1
	w.leaseTTL = time.Hour // a slow worker loses no partition before its hand-over
	r, stuck, goOn := newRoll(t), make(chan int, 4), make(chan struct{})
	a := w.start("a", worker.Tee(r.listener("a"), worker.Listener{Retrying: func(e worker.Retrying) {
		if e.Step == "erase session" {
			stuck <- e.Partition
			<-goOn
		}
	}}))
	r.await(map[string]int{"a": 4})
	for id := range 4 { // nothing can be removed there
		if err := os.MkdirAll(filepath.Join(w.ledgers, fmt.Sprintf("p%d.db.bad-1", id), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 16 {
		w.publish(events.KindTurn, fmt.Sprintf("gone-%d", i), turn(1))
		w.publish(events.KindForget, fmt.Sprintf("gone-%d", i), []byte(`{"v":1}`))
	}
	for range 4 {
		next(t, stuck, "erasure")
	}
	w.ledgers = t.TempDir()
	b := w.start("b", r.listener("b"))
	r.await(map[string]int{"a": 4, "b": 2})
	close(goOn)
	r.await(map[string]int{"a": 2, "b": 2})
	for _, x := range []*running{b, a} {
		if err := x.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// E8: the file of a partition that is handed over is closed after the next owner has
// begun. What that one erases meanwhile goes with the file.
func TestForgetDuringHandOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	w.checkpointEvery = time.Hour // the only checkpoint is that of the end
	w.leaseTTL = time.Hour        // a slow worker loses no partition before its hand-over
	old, r := t.TempDir(), newRoll(t)
	w.ledgers = old
	writing, goOn := make(chan int, 4), make(chan struct{})
	a := w.start("a", worker.Tee(r.listener("a"), worker.Listener{Checkpointed: func(e worker.Checkpointed) {
		writing <- e.Partition
		<-goOn
	}}))
	r.await(map[string]int{"a": 4})
	for i := range 16 {
		w.publish(events.KindTurn, fmt.Sprintf("gone-%d", i), turn(1))
	}
	w.settle()
	w.ledgers, w.checkpointEvery = t.TempDir(), 1
	var b *running
	var closing []int
	for len(closing) == 0 { // a hand-over that takes long, on a busy machine, writes no file
		if b != nil {
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			r.await(map[string]int{"a": 4})
		}
		b = w.start("b", r.listener("b"))
		r.await(map[string]int{"b": 2})
		closing = r.both("a", "b")
	}
	for range closing {
		next(t, writing, "checkpoint")
	}
	for i := range 16 {
		name := fmt.Sprintf("gone-%d", i)
		if slices.Contains(closing, events.PartitionOf(events.Address{Tenant: "default", Session: name}, 4)) {
			w.forget(name)
		}
	}
	close(goOn)
	r.await(map[string]int{"a": 2, "b": 2})
	for _, id := range closing {
		until(t, "the file that was closed is gone", func() bool {
			_, err := os.Stat(filepath.Join(old, fmt.Sprintf("p%d.db", id)))
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	for _, x := range []*running{a, b} {
		if err := x.stop(); err != nil {
			t.Fatal(err)
		}
	}
	w.wantAsLogSays()
}

// E8: an erasure that nobody serves is said, and done by the next worker; asking again
// waits for it, and is no harm.
func TestForgetUnserved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir)
	stop := w.run("a", worker.Listener{})
	w.publish(events.KindTurn, victim, secretTurn(1))
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	a := events.Address{Tenant: "default", Session: victim}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan *nats.Msg, 1)
	if _, err := w.conn.ChanSubscribe("session.forget.>", asked); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { _, err := erase.Request(ctx, w.js, a, "first"); failed <- err }()
	next(t, asked, "session.forget")
	until(t, "the event is stored", func() bool {
		seq, err := erase.LastForget(t.Context(), w.conn, events.PartitionOf(a, 4), a)
		return err == nil && seq == 2
	})
	cancel()
	if unserved, ok := errors.AsType[*erase.NotErasedError](next(t, failed, "error")); !ok || unserved.Seq != 2 {
		t.Errorf("without a worker: %v", unserved)
	}
	stop = w.run("b", worker.Listener{})
	done, err := erase.Request(t.Context(), w.js, a, "second")
	if err != nil || done.Seq != 3 {
		t.Fatalf("with a worker: %+v, %v", done, err)
	}
	if found := holders(t, secret, dir); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
	if _, err := erase.Request(t.Context(), w.js, events.Address{Tenant: "default", Session: "a b"}, ""); events.CodeOf(err) != events.CodeBadID {
		t.Errorf("a session that cannot be: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
