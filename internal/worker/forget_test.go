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
	"compactd/internal/worker/observe"
)

// victim is the session that is erased, and secret a text of it that must not remain.
const (
	victim = "victim"
	secret = "s3cr3t-0f-th3-v1ct1m"
)

// secretTurn is a turn of the victim that is full of the secret.
func secretTurn(n int) []byte {
	return bytes.ReplaceAll(agentTurn(1, n), []byte("word"), []byte(secret))
}

// filesContaining lists the files below some directories that contain a text.
func filesContaining(t *testing.T, text string, dirs ...string) (out []string) {
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

// until waits for a state that no event reports, such as that of files.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !ok(); pause(t, time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// eraseSession publishes session.forget, and waits until the erasure is published.
func (env *testEnv) eraseSession(session string) (events.Forgotten, events.Erased) {
	env.t.Helper()
	received := make(chan *nats.Msg, 10)
	a := events.Address{Tenant: "default", Session: session}
	for _, k := range []events.Kind{events.KindForgotten, events.KindErased} {
		if _, err := env.conn.ChanSubscribe(events.Published(k, a), received); err != nil {
			env.t.Fatal(err)
		}
	}
	seq := env.publish(events.KindForget, session, []byte(`{"v":1,"id":"erase-1"}`))
	first, second := next(env.t, received, "answer"), next(env.t, received, "confirmation")
	var f events.Forgotten
	var e events.Erased
	if err := events.Unmarshal(first.Data, &f); err != nil {
		env.t.Fatal(err)
	}
	if err := events.Unmarshal(second.Data, &e); err != nil {
		env.t.Fatal(err)
	}
	if f.Seq != seq || e.Seq != seq || f.CausedBy.ID != "erase-1" {
		env.t.Errorf("session.forget at %d was answered by %s and %s", seq, first.Data, second.Data)
	}
	return f, e
}

// awaitSummaries waits until every job has its summary, and the whole log is decided.
func (env *testEnv) awaitSummaries() {
	env.t.Helper()
	count := func(from, filter string) (n int) {
		err := stream.ReadStream(env.t.Context(), env.js, from, filter, 1, 0, func(jetstream.Msg, uint64) error { n++; return nil })
		if err != nil {
			env.t.Fatal(err)
		}
		return n
	}
	env.awaitDecided()
	until(env.t, "every job has its summary", func() bool {
		return count(topology.OutcomesStream, "out.*.job.>") == count(topology.LogStream, "log.*.summary.>")
	})
	env.awaitDecided()
}

// noRetry fails a test whose worker retries a step. A missed heartbeat is no failure: a
// server on a busy machine is late with it.
func noRetry(t *testing.T) func(observe.Retrying) {
	return func(e observe.Retrying) {
		if !errors.Is(e.Err, jetstream.ErrNoHeartbeat) {
			t.Errorf("%s: %v", e.Step, e.Err)
		}
	}
}

// E8: after a session.forget no byte of the session is in any file of server and worker.
// Outcomes of the other sessions are as they were. New ones follow from the log as it is now,
// from checkpoints and from zero. The session may start again.
func TestForget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := newEnv(t, dir)
	env.ledgers, env.checkpointEvery = t.TempDir(), 1
	env.config, env.summarizer = newConfig(t, compaction.DefaultPolicy()), extract.New()
	stop := env.run("a", observe.Listener{})
	for n := 1; n <= 12; n++ {
		env.rounds(6, n, n+1)()
		env.publish(events.KindTurn, victim, secretTurn(n))
	}
	env.awaitSummaries()
	until(t, "the victim is in the log and in a file", func() bool {
		return len(filesContaining(t, secret, dir)) > 0 && len(filesContaining(t, victim, env.ledgers)) > 0
	})
	before := env.outcomesBySession()
	_, e := env.eraseSession(victim)
	if e.Events < 12 || e.Outcomes == 0 || e.Resumed {
		t.Errorf("erased: %+v", e)
	}
	if found := filesContaining(t, secret, dir, env.ledgers); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
	if found := filesContaining(t, victim, env.ledgers); len(found) > 0 {
		t.Errorf("the name is in %q", found)
	}
	after := env.outcomesBySession()
	for p, was := range before {
		if p.address.Session != victim {
			if d := cmp.Diff(was, after[p], cmp.AllowUnexported(outcome{})); d != "" {
				t.Errorf("outcomes of %s have changed: %s", p.address, d)
			}
		}
	}
	env.awaitSummaries()
	env.wantRedecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	ledgers := env.ledgers
	for i, dir := range []string{"", ledgers} { // from zero, and from checkpoints
		env.ledgers = dir
		stop = env.run([]string{"b", "c"}[i], observe.Listener{Retrying: noRetry(t)})
		env.rounds(6, 13+6*i, 19+6*i)()
		env.publish(events.KindTurn, victim, []byte(`{"turn":13,"messages":[{"role":"user","content":"still there?"}]}`))
		env.publish(events.KindTurn, victim, []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"again"}]}`))
		env.awaitSummaries()
		env.wantRedecided()
		if i == 1 {
			env.eraseSession(victim)
			env.wantRedecided()
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	env.stop()
	if found := filesContaining(t, secret, dir, ledgers); len(found) > 0 {
		t.Errorf("after the stop the secret is in %q", found)
	}
}

// A summary that was under way when its session was erased is not stored: it would quote
// what is erased.
func TestForgetWhileSummarized(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := newEnv(t, dir)
	started, goOn := make(chan struct{}, 10), make(chan struct{})
	env.config = newConfig(t, compaction.DefaultPolicy())
	env.summarizer = summarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		started <- struct{}{}
		<-goOn
		return extract.New().Summarize(ctx, in)
	})
	stop := env.run("a", observe.Listener{})
	for n := 1; n <= 12; n++ {
		env.publish(events.KindTurn, victim, secretTurn(n))
	}
	next(t, started, "job")
	env.eraseSession(victim)
	close(goOn)
	env.publish(events.KindTurn, "other", turn(1))
	env.awaitDecided()
	if err := stop(); err != nil { // which waits for the pool
		t.Fatal(err)
	}
	subjects := func(o []outcome) (out []string) {
		for _, x := range o {
			out = append(out, x.subject)
		}
		return out
	}
	for p, outcomes := range env.outcomesBySession() {
		if p.address.Session == victim && len(outcomes) != 1 {
			t.Errorf("outcomes of the victim: %q", subjects(outcomes))
		}
	}
	if found := filesContaining(t, secret, dir); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
}

// A job that was requested before a session.forget and is tried again after it, while the texts
// are still in the log, makes no summary: the summary would outlive them.
func TestForgetBeforeSummarized(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := newEnv(t, dir)
	called, goOn := make(chan struct{}, 10), make(chan struct{})
	started, held, read := make(chan uint64, 10), make(chan struct{}, 10), make(chan struct{})
	env.config = newConfig(t, compaction.DefaultPolicy())
	env.summarizer = summarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		select {
		case <-goOn:
			return extract.New().Summarize(ctx, in)
		default:
		}
		called <- struct{}{}
		<-goOn
		return nil, &summarize.RetryAfterError{After: time.Millisecond, Err: errors.New("busy")}
	})
	last := make(chan compaction.Seq, 1) // no event after it is read
	l := observe.Listener{
		SummaryStarted: func(e observe.SummaryStarted) { started <- e.Attempt },
		Applied: func(e observe.Applied) {
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
	stop := env.run("a", l)
	for n := 1; n <= 12; n++ {
		env.publish(events.KindTurn, victim, secretTurn(n))
	}
	next(t, called, "job")
	env.awaitDecided()
	last <- compaction.Seq(env.state(topology.LogStream).Last + 1)
	env.publish(events.KindTurn, victim, secretTurn(13))
	next(t, held, "turn at which reading waits")
	erased := make(chan *nats.Msg, 1)
	if _, err := env.conn.ChanSubscribe(events.Published(events.KindErased, events.Address{Tenant: "default", Session: victim}), erased); err != nil {
		t.Fatal(err)
	}
	env.publish(events.KindForget, victim, []byte(`{"v":1,"id":"erase-1"}`))
	close(goOn)
	for next(t, started, "try") < 2 {
	}
	env.jobsDone()
	close(read)
	next(t, erased, "confirmation")
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if found := filesContaining(t, secret, dir); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
}

// refused publishes an invalid turn, and waits for its rejection, which is committed with a
// marker.
func (env *testEnv) refused(session string) {
	env.t.Helper()
	received := make(chan *nats.Msg, 1)
	if _, err := env.conn.ChanSubscribe(events.Published(events.KindRejected, events.Address{Tenant: "default", Session: session}), received); err != nil {
		env.t.Fatal(err)
	}
	env.publish(events.KindTurn, session, []byte(`{"messages":7}`))
	next(env.t, received, "rejection")
}

// E8, P10: when the only outcomes whose markers name a config are erased, other sessions are
// still replayed under that config.
func TestForgetKeepsConfigs(t *testing.T) {
	t.Parallel()
	later := compaction.DefaultPolicy()
	later.Profile, later.Summarize.Enabled = "seed", false
	var outcomes [2][]outcome
	for i, dir := range []string{t.TempDir(), ""} {
		env := openEnv(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
		env.ledgers, env.checkpointEvery, env.markerEvery = dir, 1, time.Hour // no marker but those of outcomes
		first := env.config
		for run, c := range []*compaction.Config{first, newConfig(t, later), newConfig(t, later)} {
			env.config = c
			stop := env.run(fmt.Sprintf("run-%d", run), observe.Listener{Retrying: noRetry(t)})
			switch run {
			case 0:
				for n := 1; n <= 6; n++ {
					env.publish(events.KindTurn, "s", usageTurn(n))
				}
				env.refused(victim)
			case 1:
				if _, e := env.eraseSession(victim); e.Outcomes != 1 {
					t.Errorf("erased %+v; want the one rejection", e)
				}
			case 2:
				for n := 7; n <= 20; n++ {
					env.publish(events.KindTurn, "s", usageTurn(n))
				}
				env.refused("end")
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		outcomes[i] = env.outcomesBySession()[place{partition: 0, address: events.Address{Tenant: "default", Session: "s"}}]
	}
	if d := cmp.Diff(outcomes[0], outcomes[1], cmp.AllowUnexported(outcome{})); d != "" || len(outcomes[0]) == 0 {
		t.Errorf("%d outcomes; from a checkpoint and from the log (-checkpoint +log):\n%s", len(outcomes[0]), d)
	}
}

// E8: the session is also removed from the ledger files that a worker has of partitions it
// released: when the owner publishes the erasure, and at the next start.
func TestForgetInOldFiles(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	env.checkpointEvery = 1
	old, owners := t.TempDir(), newOwnership(t)
	env.ledgers = old
	a := env.start("a", owners.listener("a"))
	owners.await(map[string]int{"a": 4})
	names := make([]string, 16) // of sessions in every partition
	for i := range names {
		names[i] = fmt.Sprintf("gone-%d", i)
		env.publish(events.KindTurn, names[i], turn(1))
	}
	env.awaitDecided()
	env.ledgers = t.TempDir()
	b := env.start("b", owners.listener("b"))
	owners.await(map[string]int{"a": 2, "b": 2})
	for _, name := range names[:8] {
		env.eraseSession(name)
	}
	until(t, "the names are gone from the old files", func() bool {
		return len(filesContaining(t, "gone-0", old))+len(filesContaining(t, "gone-7", old)) == 0
	})
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	owners.await(map[string]int{"b": 4})
	if len(filesContaining(t, "gone-", old)) == 0 {
		t.Fatal("no old file contains a name: the test shows nothing")
	}
	for _, name := range names[8:] {
		env.eraseSession(name)
	}
	env.ledgers = old
	a = env.start("a", owners.listener("a"))
	owners.await(map[string]int{"a": 2, "b": 2})
	if found := filesContaining(t, "gone-", old); len(found) > 0 {
		t.Errorf("names are still in %q", found)
	}
	for _, x := range []*running{a, b} {
		if err := x.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if found := filesContaining(t, "gone-", old, env.ledgers); len(found) > 0 {
		t.Errorf("after the stop names are in %q", found)
	}
}

// E8, P6: a hand-over does not wait for an erasure, which may take long in a large file; the
// next owner completes it.
func TestHandOverDuringErasure(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	env.ledgers, env.checkpointEvery = t.TempDir(), 1
	env.leaseTTL = time.Hour // a slow worker loses no partition before its hand-over
	owners, stuck, goOn := newOwnership(t), make(chan int, 4), make(chan struct{})
	a := env.start("a", observe.Tee(owners.listener("a"), observe.Listener{Retrying: func(e observe.Retrying) {
		if e.Step == "erase session" {
			stuck <- e.Partition
			<-goOn
		}
	}}))
	owners.await(map[string]int{"a": 4})
	for id := range 4 { // nothing can be removed there
		if err := os.MkdirAll(filepath.Join(env.ledgers, fmt.Sprintf("p%d.db.bad-1", id), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 16 {
		env.publish(events.KindTurn, fmt.Sprintf("gone-%d", i), turn(1))
		env.publish(events.KindForget, fmt.Sprintf("gone-%d", i), []byte(`{"v":1}`))
	}
	for range 4 {
		next(t, stuck, "erasure")
	}
	env.ledgers = t.TempDir()
	b := env.start("b", owners.listener("b"))
	owners.await(map[string]int{"a": 4, "b": 2})
	close(goOn)
	owners.await(map[string]int{"a": 2, "b": 2})
	for _, x := range []*running{b, a} {
		if err := x.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// E8: the file of a partition that is handed over is closed after the next owner has started.
// Sessions that the next owner erases meanwhile are not left in that file.
func TestForgetDuringHandOver(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	env.checkpointEvery = time.Hour // the only checkpoint is that of the end
	env.leaseTTL = time.Hour        // a slow worker loses no partition before its hand-over
	old, owners := t.TempDir(), newOwnership(t)
	env.ledgers = old
	writing, goOn := make(chan int, 4), make(chan struct{})
	a := env.start("a", observe.Tee(owners.listener("a"), observe.Listener{Checkpointed: func(e observe.Checkpointed) {
		writing <- e.Partition
		<-goOn
	}}))
	owners.await(map[string]int{"a": 4})
	for i := range 16 {
		env.publish(events.KindTurn, fmt.Sprintf("gone-%d", i), turn(1))
	}
	env.awaitDecided()
	env.ledgers, env.checkpointEvery = t.TempDir(), 1
	var b *running
	var closing []int
	for len(closing) == 0 { // on a busy machine the hand-over may take too long to write the file
		if b != nil {
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			owners.await(map[string]int{"a": 4})
		}
		b = env.start("b", owners.listener("b"))
		owners.await(map[string]int{"b": 2})
		closing = owners.both("a", "b")
	}
	for range closing {
		next(t, writing, "checkpoint")
	}
	for i := range 16 {
		name := fmt.Sprintf("gone-%d", i)
		if slices.Contains(closing, events.PartitionOf(events.Address{Tenant: "default", Session: name}, 4)) {
			env.eraseSession(name)
		}
	}
	close(goOn)
	owners.await(map[string]int{"a": 2, "b": 2})
	for _, id := range closing {
		until(t, "the old file is removed", func() bool {
			_, err := os.Stat(filepath.Join(old, fmt.Sprintf("p%d.db", id)))
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	for _, x := range []*running{a, b} {
		if err := x.stop(); err != nil {
			t.Fatal(err)
		}
	}
	env.wantRedecided()
}

// E8: an erasure that no worker carries out yet is reported, and the next worker does it. A
// second request waits for it, and does no harm.
func TestForgetUnserved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := newEnv(t, dir)
	stop := env.run("a", observe.Listener{})
	env.publish(events.KindTurn, victim, secretTurn(1))
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	a := events.Address{Tenant: "default", Session: victim}
	ctx, cancel := context.WithCancel(t.Context())
	requested := make(chan *nats.Msg, 1)
	if _, err := env.conn.ChanSubscribe("session.forget.>", requested); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { _, err := erase.Request(ctx, env.js, a, "first"); failed <- err }()
	next(t, requested, "session.forget")
	until(t, "the event is stored", func() bool {
		seq, err := erase.LastForget(t.Context(), env.conn, events.PartitionOf(a, 4), a)
		return err == nil && seq == 2
	})
	cancel()
	if unserved, ok := errors.AsType[*erase.NotErasedError](next(t, failed, "error")); !ok || unserved.Seq != 2 {
		t.Errorf("without a worker: %v", unserved)
	}
	stop = env.run("b", observe.Listener{})
	done, err := erase.Request(t.Context(), env.js, a, "second")
	if err != nil || done.Seq != 3 {
		t.Fatalf("with a worker: %+v, %v", done, err)
	}
	if found := filesContaining(t, secret, dir); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
	if _, err := erase.Request(t.Context(), env.js, events.Address{Tenant: "default", Session: "a b"}, ""); events.CodeOf(err) != events.CodeBadID {
		t.Errorf("a session with an invalid id: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
