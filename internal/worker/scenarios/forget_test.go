package scenarios_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/workertest"
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

// eraseSession publishes session.forget, and waits until the erasure is published. A late summary is erased by an event
// of its own, whose answers are passed over.
func eraseSession(env *workertest.Env, session string) (f events.Forgotten, e events.Erased) {
	env.T.Helper()
	a := events.Address{Tenant: "default", Session: session}
	answers, confirmations := make(chan *nats.Msg, 10), make(chan *nats.Msg, 10)
	for k, received := range map[events.Kind]chan *nats.Msg{events.KindForgotten: answers, events.KindErased: confirmations} {
		if _, err := env.Conn.ChanSubscribe(events.Published(k, a), received); err != nil {
			env.T.Fatal(err)
		}
	}
	seq := env.Publish(events.KindForget, session, []byte(`{"v":1,"id":"erase-1"}`))
	for f.Seq < seq {
		if err := codec.Unmarshal(workertest.Next(env.T, answers, "answer").Data, &f); err != nil {
			env.T.Fatal(err)
		}
	}
	for e.Seq < seq {
		if err := codec.Unmarshal(workertest.Next(env.T, confirmations, "confirmation").Data, &e); err != nil {
			env.T.Fatal(err)
		}
	}
	if f.Seq != seq || e.Seq != seq || f.CausedBy.ID != "erase-1" {
		env.T.Errorf("session.forget at %d was answered by %+v and %+v", seq, f, e)
	}
	return f, e
}

// awaitSummaries waits until every job has its summary, and the whole log is decided.
func awaitSummaries(env *workertest.Env) {
	env.T.Helper()
	count := func(from, filter string) (n int) {
		err := stream.ReadStream(env.T.Context(), env.JS, from, filter, 1, 0, func(jetstream.Msg, uint64) error { n++; return nil })
		if err != nil {
			env.T.Fatal(err)
		}
		return n
	}
	env.AwaitDecided()
	workertest.Until(env.T, "every job has its summary", func() bool {
		return count(topology.OutcomesStream, "out.*.job.>") == count(topology.LogStream, "log.*.summary.>")
	})
	env.AwaitDecided()
}

// E8: after a session.forget no byte of the session is in any file of server and worker.
// Outcomes of the other sessions are as they were. New ones follow from the log as it is now,
// from checkpoints and from zero. The session may start again.
func TestForget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := workertest.New(t, dir)
	env.Ledgers, env.CheckpointEvery = t.TempDir(), 1
	env.Config, env.Summarizer = workertest.NewConfig(t, policy.Default()), extract.New()
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 12; n++ {
		publishRounds(env, 6, n, n+1)()
		env.Publish(events.KindTurn, victim, secretTurn(n))
	}
	awaitSummaries(env)
	workertest.Until(t, "the victim is in the log and in a file", func() bool {
		return len(filesContaining(t, secret, dir)) > 0 && len(filesContaining(t, victim, env.Ledgers)) > 0
	})
	before := env.OutcomesBySession()
	_, e := eraseSession(env, victim)
	if e.Events < 12 || e.Outcomes == 0 || e.Resumed {
		t.Errorf("erased: %+v", e)
	}
	if found := filesContaining(t, secret, dir, env.Ledgers); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
	if found := filesContaining(t, victim, env.Ledgers); len(found) > 0 {
		t.Errorf("the name is in %q", found)
	}
	after := env.OutcomesBySession()
	for p, was := range before {
		if p.Address.Session != victim {
			if d := cmp.Diff(was, after[p]); d != "" {
				t.Errorf("outcomes of %s have changed: %s", p.Address, d)
			}
		}
	}
	awaitSummaries(env)
	env.WantRedecided()
	stop()
	ledgers := env.Ledgers
	for i, dir := range []string{"", ledgers} { // from zero, and from checkpoints
		env.Ledgers = dir
		stop = env.Run([]string{"b", "c"}[i], observe.Listener{Retrying: workertest.NoRetry(t)})
		publishRounds(env, 6, 13+6*i, 19+6*i)()
		env.Publish(events.KindTurn, victim, []byte(`{"turn":13,"messages":[{"role":"user","content":"still there?"}]}`))
		env.Publish(events.KindTurn, victim, []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"again"}]}`))
		awaitSummaries(env)
		env.WantRedecided()
		if i == 1 {
			eraseSession(env, victim)
			env.WantRedecided()
		}
		stop()
	}
	env.Stop()
	if found := filesContaining(t, secret, dir, ledgers); len(found) > 0 {
		t.Errorf("after the stop the secret is in %q", found)
	}
}

// A summary that was under way when its session was erased is not stored: it would quote
// what is erased.
func TestForgetWhileSummarized(t *testing.T) {
	t.Parallel()
	for _, grows := range []bool{false, true} { // then another partition erases it than the one that requested the summary
		t.Run(fmt.Sprint("grows=", grows), func(t *testing.T) {
			t.Parallel()
			forgetWhileSummarized(t, grows)
		})
	}
}

func forgetWhileSummarized(t *testing.T, grows bool) {
	t.Helper()
	dir := t.TempDir()
	env := workertest.New(t, dir)
	started, goOn := make(chan struct{}, 10), make(chan struct{})
	env.Config = workertest.NewConfig(t, policy.Default())
	env.Summarizer = workertest.SummarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		started <- struct{}{}
		<-goOn
		return extract.New().Summarize(ctx, in)
	})
	env.LeaseTTL = time.Second
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 12; n++ {
		env.Publish(events.KindTurn, victim, secretTurn(n))
	}
	workertest.Next(t, started, "job")
	if a := (events.Address{Tenant: "default", Session: victim}); grows {
		before := env.Streams.Partitions.Of(a)
		if grow(env); env.Streams.Partitions.Of(a) == before {
			t.Fatal("the session has not moved")
		}
	}
	eraseSession(env, victim)
	close(goOn)
	env.Publish(events.KindTurn, "other", workertest.Turn(1))
	env.AwaitDecided()
	stop() // which waits for the pool
	subjects := func(o []workertest.Outcome) (out []string) {
		for _, x := range o {
			out = append(out, x.Subject)
		}
		return out
	}
	for p, outcomes := range env.OutcomesBySession() {
		if p.Address.Session == victim && len(outcomes) != 1 {
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
	env := workertest.New(t, dir)
	called, goOn := make(chan struct{}, 10), make(chan struct{})
	started, held, read := make(chan uint64, 10), make(chan struct{}, 10), make(chan struct{})
	env.Config = workertest.NewConfig(t, policy.Default())
	env.Summarizer = workertest.SummarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		select {
		case <-goOn:
			return extract.New().Summarize(ctx, in)
		default:
		}
		called <- struct{}{}
		<-goOn
		return nil, &summarize.RetryAfterError{After: time.Millisecond, Err: errors.New("busy")}
	})
	last := make(chan measure.Seq, 1) // no event after it is read
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
	stop := env.Run("a", l)
	for n := 1; n <= 12; n++ {
		env.Publish(events.KindTurn, victim, secretTurn(n))
	}
	workertest.Next(t, called, "job")
	env.AwaitDecided()
	last <- measure.Seq(env.State(topology.LogStream).Last + 1)
	env.Publish(events.KindTurn, victim, secretTurn(13))
	workertest.Next(t, held, "turn at which reading waits")
	erased := make(chan *nats.Msg, 1)
	if _, err := env.Conn.ChanSubscribe(events.Published(events.KindErased, events.Address{Tenant: "default", Session: victim}), erased); err != nil {
		t.Fatal(err)
	}
	env.Publish(events.KindForget, victim, []byte(`{"v":1,"id":"erase-1"}`))
	close(goOn)
	for workertest.Next(t, started, "try") < 2 {
	}
	jobsDone(env)
	close(read)
	workertest.Next(t, erased, "confirmation")
	env.AwaitDecided()
	stop()
	if found := filesContaining(t, secret, dir); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
}

// refused publishes an invalid turn, and waits for its rejection, which is committed with a
// marker.
func refused(env *workertest.Env, session string) {
	env.T.Helper()
	received := make(chan *nats.Msg, 1)
	if _, err := env.Conn.ChanSubscribe(events.Published(events.KindRejected, events.Address{Tenant: "default", Session: session}), received); err != nil {
		env.T.Fatal(err)
	}
	env.Publish(events.KindTurn, session, []byte(`{"messages":7}`))
	workertest.Next(env.T, received, "rejection")
}

// E8, P10: when the only outcomes whose markers name a config are erased, other sessions are
// still replayed under that config.
func TestForgetKeepsConfigs(t *testing.T) {
	t.Parallel()
	later := policy.Default()
	later.Profile, later.Summarize.Enabled = "seed", false
	var outcomes [2][]workertest.Outcome
	for i, dir := range []string{t.TempDir(), ""} {
		env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
		env.Ledgers, env.CheckpointEvery, env.MarkerEvery = dir, 1, time.Hour // no marker but those of outcomes
		first := env.Config
		for run, c := range []*compaction.Config{first, workertest.NewConfig(t, later), workertest.NewConfig(t, later)} {
			env.Config = c
			stop := env.Run(fmt.Sprintf("run-%d", run), observe.Listener{Retrying: workertest.NoRetry(t)})
			switch run {
			case 0:
				for n := 1; n <= 6; n++ {
					env.Publish(events.KindTurn, "s", workertest.UsageTurn(n))
				}
				refused(env, victim)
			case 1:
				if _, e := eraseSession(env, victim); e.Outcomes != 1 {
					t.Errorf("erased %+v; want the one rejection", e)
				}
			case 2:
				for n := 7; n <= 20; n++ {
					env.Publish(events.KindTurn, "s", workertest.UsageTurn(n))
				}
				refused(env, "end")
			}
			stop()
		}
		outcomes[i] = env.OutcomesBySession()[workertest.Place{Partition: 0, Address: events.Address{Tenant: "default", Session: "s"}}]
	}
	if d := cmp.Diff(outcomes[0], outcomes[1]); d != "" || len(outcomes[0]) == 0 {
		t.Errorf("%d outcomes; from a checkpoint and from the log (-checkpoint +log):\n%s", len(outcomes[0]), d)
	}
}

// E8: the session is also removed from the ledger files that a worker has of partitions it
// released: when the owner publishes the erasure, and at the next start.
func TestForgetInOldFiles(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.CheckpointEvery = 1
	old, owners := t.TempDir(), workertest.NewOwnership(t)
	env.Ledgers = old
	a := env.Start("a", owners.Listener("a"))
	owners.Await(map[string]int{"a": 4})
	names := make([]string, 16) // of sessions in every partition
	for i := range names {
		names[i] = fmt.Sprintf("gone-%d", i)
		env.Publish(events.KindTurn, names[i], workertest.Turn(1))
	}
	env.AwaitDecided()
	env.Ledgers = t.TempDir()
	b := env.Start("b", owners.Listener("b"))
	owners.Await(map[string]int{"a": 2, "b": 2})
	for _, name := range names[:8] {
		eraseSession(env, name)
	}
	workertest.Until(t, "the names are gone from the old files", func() bool {
		return len(filesContaining(t, "gone-0", old))+len(filesContaining(t, "gone-7", old)) == 0
	})
	a.Stop()
	owners.Await(map[string]int{"b": 4})
	if len(filesContaining(t, "gone-", old)) == 0 {
		t.Fatal("no old file contains a name: the test shows nothing")
	}
	for _, name := range names[8:] {
		eraseSession(env, name)
	}
	env.Ledgers = old
	a = env.Start("a", owners.Listener("a"))
	owners.Await(map[string]int{"a": 2, "b": 2})
	if found := filesContaining(t, "gone-", old); len(found) > 0 {
		t.Errorf("names are still in %q", found)
	}
	for _, x := range []*workertest.Running{a, b} {
		x.Stop()
	}
	if found := filesContaining(t, "gone-", old, env.Ledgers); len(found) > 0 {
		t.Errorf("after the stop names are in %q", found)
	}
}

// E8, P6: a hand-over does not wait for an erasure, which may take long in a large file; the
// next owner completes it.
func TestHandOverDuringErasure(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Ledgers, env.CheckpointEvery = t.TempDir(), 1
	env.LeaseTTL = time.Hour // a slow worker loses no partition before its hand-over
	owners, stuck, goOn := workertest.NewOwnership(t), make(chan int, 4), make(chan struct{})
	env.Start("a", observe.Tee(owners.Listener("a"), observe.Listener{Retrying: func(e observe.Retrying) {
		if e.Step == "erase session" {
			stuck <- e.Partition
			<-goOn
		}
	}}))
	owners.Await(map[string]int{"a": 4})
	for id := range 4 { // nothing can be removed there
		if err := os.MkdirAll(filepath.Join(env.Ledgers, fmt.Sprintf("p%d.db.bad-1", id), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 16 {
		env.Publish(events.KindTurn, fmt.Sprintf("gone-%d", i), workertest.Turn(1))
		env.Publish(events.KindForget, fmt.Sprintf("gone-%d", i), []byte(`{"v":1}`))
	}
	for range 4 {
		workertest.Next(t, stuck, "erasure")
	}
	env.Ledgers = t.TempDir()
	env.Start("b", owners.Listener("b"))
	owners.Await(map[string]int{"a": 4, "b": 2})
	close(goOn)
	owners.Await(map[string]int{"a": 2, "b": 2})
}

// E8: the file of a partition that is handed over is closed after the next owner has started.
// Sessions that the next owner erases meanwhile are not left in that file.
func TestForgetDuringHandOver(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.CheckpointEvery = time.Hour // the only checkpoint is that of the end
	env.LeaseTTL = time.Hour        // a slow worker loses no partition before its hand-over
	old, owners := t.TempDir(), workertest.NewOwnership(t)
	env.Ledgers = old
	writing, goOn := make(chan int, 4), make(chan struct{})
	a := env.Start("a", observe.Tee(owners.Listener("a"), observe.Listener{Checkpointed: func(e observe.Checkpointed) {
		writing <- e.Partition
		<-goOn
	}}))
	owners.Await(map[string]int{"a": 4})
	for i := range 16 {
		env.Publish(events.KindTurn, fmt.Sprintf("gone-%d", i), workertest.Turn(1))
	}
	env.AwaitDecided()
	env.Ledgers, env.CheckpointEvery = t.TempDir(), 1
	var b *workertest.Running
	var closing []int
	for len(closing) == 0 { // on a busy machine the hand-over may take too long to write the file
		if b != nil {
			b.Stop()
			owners.Await(map[string]int{"a": 4})
		}
		b = env.Start("b", owners.Listener("b"))
		owners.Await(map[string]int{"b": 2})
		closing = owners.Both("a", "b")
	}
	for range closing {
		workertest.Next(t, writing, "checkpoint")
	}
	for i := range 16 {
		name := fmt.Sprintf("gone-%d", i)
		if slices.Contains(closing, events.PartitionOf(events.Address{Tenant: "default", Session: name}, 4)) {
			eraseSession(env, name)
		}
	}
	close(goOn)
	owners.Await(map[string]int{"a": 2, "b": 2})
	for _, id := range closing {
		workertest.Until(t, "the old file is removed", func() bool {
			_, err := os.Stat(filepath.Join(old, fmt.Sprintf("p%d.db", id)))
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	for _, x := range []*workertest.Running{a, b} {
		x.Stop()
	}
	env.WantRedecided()
}

// E8: an erasure that no worker carries out yet is reported, and the next worker does it. A
// second request waits for it, and does no harm.
func TestForgetUnserved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := workertest.New(t, dir)
	stop := env.Run("a", observe.Listener{})
	env.Publish(events.KindTurn, victim, secretTurn(1))
	env.AwaitDecided()
	stop()
	a := events.Address{Tenant: "default", Session: victim}
	ctx, cancel := context.WithCancel(t.Context())
	requested := make(chan *nats.Msg, 1)
	if _, err := env.Conn.ChanSubscribe("session.forget.>", requested); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { _, err := erase.Request(ctx, env.JS, a, "first"); failed <- err }()
	workertest.Next(t, requested, "session.forget")
	workertest.Until(t, "the event is stored", func() bool {
		seq, err := erase.LastForgetOf(t.Context(), env.Conn, a)
		return err == nil && seq == 2
	})
	cancel()
	if unserved, ok := errors.AsType[*erase.NotErasedError](workertest.Next(t, failed, "error")); !ok || unserved.Seq != 2 {
		t.Errorf("without a worker: %v", unserved)
	}
	env.Run("b", observe.Listener{})
	done, err := erase.Request(t.Context(), env.JS, a, "second")
	if err != nil || done.Seq != 3 {
		t.Fatalf("with a worker: %+v, %v", done, err)
	}
	if found := filesContaining(t, secret, dir); len(found) > 0 {
		t.Errorf("the secret is in %q", found)
	}
	if _, err := erase.Request(t.Context(), env.JS, events.Address{Tenant: "default", Session: "a b"}, ""); events.CodeOf(err) != events.CodeBadID {
		t.Errorf("a session with an invalid id: %v", err)
	}
}

// jobsDone waits until every job has ended.
func jobsDone(env *workertest.Env) {
	env.T.Helper()
	workertest.Until(env.T, "all jobs have ended", func() bool {
		busy := false
		for _, lane := range events.Lanes {
			c, err := env.JS.Consumer(env.T.Context(), topology.OutcomesStream, "summarizer-"+string(lane))
			if err != nil {
				env.T.Fatal(err)
			}
			i := c.CachedInfo()
			busy = busy || i.NumPending > 0 || i.NumAckPending > 0
		}
		return !busy
	})
}

// grow doubles the partitions of the log, and waits until each is split.
func grow(env *workertest.Env) {
	env.T.Helper()
	if _, err := topology.Grow(env.T.Context(), env.JS); err != nil {
		env.T.Fatal(err)
	}
	workertest.Until(env.T, "each partition is split", func() bool {
		streams, err := topology.Describe(env.T.Context(), env.JS)
		if err == nil {
			env.Streams = streams
		}
		return err == nil && len(streams.Partitions.Unsplit()) == 0
	})
}

// Sessions that are erased while a log grows, before it and after it leave no byte in any file of the server, of the
// workers that have their partitions, and of those that had them.
func TestForgetGrown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env, owners := workertest.New(t, dir), workertest.NewOwnership(t)
	env.Config, env.Summarizer = workertest.NewConfig(t, policy.Default()), extract.New()
	env.LeaseTTL, env.CheckpointEvery, env.SnapshotEvery = time.Second, 10*time.Millisecond, 50*time.Millisecond
	var ledgers []string
	var workers []*workertest.Running
	for _, name := range []string{"a", "b"} {
		env.Ledgers = t.TempDir()
		ledgers = append(ledgers, env.Ledgers)
		workers = append(workers, env.StartReady(name, owners.Listener(name)))
	}
	owners.Await(map[string]int{"a": 2, "b": 2})
	var victims []string
	for i := range 6 {
		victims = append(victims, fmt.Sprint(victim, i))
	}
	n := 0
	turns := func() {
		n++
		publishAll(env, 4, n)
		for _, v := range victims {
			env.Publish(events.KindTurn, v, secretTurn(n))
		}
	}
	for range 4 {
		turns()
	}
	erase := func() {
		for _, v := range victims[:2] {
			eraseSession(env, v)
		}
		victims = victims[2:]
	}
	if _, err := topology.Grow(t.Context(), env.JS); err != nil {
		t.Fatal(err)
	}
	for grown := false; !grown; {
		turns()
		if len(victims) > 4 {
			erase()
		}
		streams, err := topology.Describe(t.Context(), env.JS)
		if err != nil {
			t.Fatal(err)
		}
		grown = streams.Partitions.Count() == 8 && len(streams.Partitions.Unsplit()) == 0
		env.Streams = streams
	}
	erase()
	owners.Await(map[string]int{"a": 4, "b": 4})
	turns()
	erase()
	awaitSummaries(env)
	where := append([]string{dir}, ledgers...)
	workertest.Until(t, "no file has anything of the sessions", func() bool {
		return len(filesContaining(t, secret, where...)) == 0 && len(filesContaining(t, victim, ledgers...)) == 0
	})
	for _, w := range workers {
		w.Stop()
	}
	env.WantRedecided()
	env.Stop()
	if found := filesContaining(t, secret, where...); len(found) > 0 {
		t.Errorf("after the stop the secret is in %q", found)
	}
}

// An operator erases a session over HTTP, and is answered when it is done. Agents may not, also
// not their own. An erased text is not retrieved any more.
func TestAgentsForget(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	const path = "/v1/sessions/default/chat%2F1"
	var first events.EventResponse
	for n := 1; n <= 3; n++ {
		status, got := e.Post("chat/1", "turns", string(workertest.Turn(n)))
		if status != 200 {
			t.Fatalf("turn %d: %d %+v", n, status, got)
		}
		if n == 1 {
			first = got
		}
	}
	text := strings.Repeat(fmt.Sprintf("word %d ", 1), 200)
	hash := events.ContentHash(first.Seq, text)
	if status, got := e.Do(workertest.DefaultToken, "GET", "/v1/retrieve/"+hash, ""); status != 200 || !strings.Contains(got, text) {
		t.Fatalf("before: %d %.200s", status, got)
	}
	before := env.LogEnd()
	for name, body := range map[string]string{"an agent": "", "a field that it does not know": `{"turn":2}`} {
		token, want := workertest.DefaultToken, 403
		if body != "" {
			token, want = workertest.OperatorToken, 400
		}
		if status, got := e.Do(token, "POST", path+"/forget", body); status != want || !strings.Contains(got, `"hint"`) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	if env.LogEnd() != before {
		t.Error("a refused erasure is published")
	}
	status, got := e.Do(workertest.OperatorToken, "POST", path+"/forget?wait_ms=8000", `{"id":"erase-1"}`)
	for end := time.Now().Add(workertest.WaitLimit); status == 202 && time.Now().Before(end); { // sent again, it waits on
		status, got = e.Do(workertest.OperatorToken, "POST", path+"/forget?wait_ms=8000", `{"id":"erase-1"}`)
	}
	var out events.EventResponse
	if err := json.Unmarshal([]byte(got), &out); err != nil || status != 200 || !out.Accepted || out.Erased == nil || out.Erased.Events != 3 || out.Erased.Seq != out.Seq {
		t.Fatalf("%d %s", status, got)
	}
	if err := schematest.Validate("event-response", []byte(got)); err != nil {
		t.Error(err)
	}
	if status, got := e.Do(workertest.DefaultToken, "GET", path+"/context", ""); status != 200 || !strings.Contains(got, `"known":false`) {
		t.Errorf("after: %d %s", status, got)
	}
	if status, got := e.Do(workertest.DefaultToken, "GET", "/v1/retrieve/"+hash, ""); status != 404 {
		t.Errorf("an original that was erased: %d %.200s", status, got)
	}
}
