//go:build faults

package scenarios_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/partitions"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/redecide"
)

// Agents send this while the log grows.
const (
	growTurns = 500 // a second
	growSyncs = 50  // a second
)

// Three workers on a cluster of three servers, while agents publish turns and sync histories. The log grows twice, by
// the command, and the longest wait of a sync is reported. The first time nothing fails. The second time one worker is
// frozen while the growth is requested, two are killed, the leader of SESSIONS steps down, and the command is
// killed and run again. Nothing is lost, stored twice or out of order, and what is stored is what follows from the log (P26).
func TestFaultGrow(t *testing.T) {
	t.Parallel()
	bin := buildWorker(t, "-tags", "faults")
	f := newClusterFleet(t, bin, 2*time.Second)
	for _, p := range f.workers {
		p.args = append(p.args, "--snapshot-every", "1s")
		p.start()
	}
	f.awaitBalance()
	f.sub = newSubscriber(t, f.url())
	began := time.Now()
	f.agents = newAgentFleet(t, f.url(), 48, growTurns)
	syncs := newSyncers(t, f.url(), 25, growSyncs)
	f.sub.await(100)
	syncs.await(200)
	before := syncs.slowest()

	took := f.grow(bin, nil)
	f.awaitBalance()
	syncs.await(100)
	during := syncs.slowest()

	frozen, other := f.workers[0], f.workers[1]
	frozen.signal(syscall.SIGSTOP)
	f.grow(bin, func(command *exec.Cmd) {
		f.until("request of the growth", func() bool { return len(f.table().Unsplit()) > 0 })
		_ = command.Process.Kill() // it may have lost its connection
		f.stepDown(topology.LogStream)
		frozen.kill()
		other.kill()
		f.kills += 2
		f.awaitOutcomes()
		frozen.start()
		other.start()
		f.stepDown(topology.LogStream)
	})
	f.awaitBalance()
	syncs.await(100)
	killed := syncs.slowest()
	syncs.stop()
	elapsed := time.Since(began)
	syncs.compare(&f.killing)
	acks, received := f.finish()
	env := f.streamsEnv()
	replayed := env.Replay(redecide.Span{})
	if !replayed.Equal() {
		f.add(otherBytes, "replay: %+v", replayed)
	}
	f.checkOrder()
	t.Logf("%d turns are acknowledged and %d syncs answered in %s; a sync waited %s before the first growth, %s in it, %s in the second: %d violations, replayed %+v",
		len(acks), syncs.done(), elapsed, before, during, killed, len(f.violations), replayed)
	f.auditStreams(env, acks, received)
	for _, v := range f.violations {
		t.Error(v)
	}
	found := f.found()
	figures.Print(t, "P26", "partitions", f.count, "kills", f.kills, "acks", f.acks, "turns_per_s", int(float64(f.acks)/elapsed.Seconds()), "syncs", syncs.done(),
		"syncs_per_s", int(float64(syncs.done())/elapsed.Seconds()), "lost", found[lostTurn]+found[lostSync], "twice", found[twiceStored]+found[twiceReceived], "order", found[otherOrder],
		"outcomes", f.outcomes, "different", found[otherBytes]+found[missing]+found[notInLog],
		"stall_ms", during.Milliseconds(), "before_ms", before.Milliseconds(), "killed_ms", killed.Milliseconds(), "grow_ms", took.Milliseconds(),
		"violations", len(f.violations))
	if f.acks == 0 || f.outcomes == 0 || f.received == 0 || syncs.done() == 0 || f.count != 4*fleetPartitions {
		t.Error("a count is zero: the test shows nothing")
	}
}

// lostSync: what an agent synced is not in the session, each message once.
const lostSync = "session differs from the history that was synced"

// table is that of the log now.
func (f *workerFleet) table() (t partitions.Table) {
	f.t.Helper()
	f.until("streams", func() bool {
		streams, err := topology.Describe(f.t.Context(), f.js)
		if err == nil {
			f.streams, t = streams, streams.Partitions
		}
		return err == nil
	})
	return t
}

// grow doubles the partitions by the command, again where it fails, and returns how long that took. meanwhile runs
// beside the first run.
func (f *workerFleet) grow(bin string, meanwhile func(*exec.Cmd)) time.Duration {
	f.t.Helper()
	began, to := time.Now(), fmt.Sprint(2*f.table().Count())
	var last bytes.Buffer
	defer func() {
		if f.t.Failed() {
			f.t.Log(last.String())
		}
	}()
	run := func(beside func(*exec.Cmd)) bool {
		last.Reset()
		command := exec.CommandContext(f.t.Context(), bin, "partitions", "grow", to, "--yes", "--json", "--timeout", "1m", "--nats", f.url())
		command.Env, command.Stderr, command.Stdout = os.Environ(), &last, &last
		if err := command.Start(); err != nil {
			f.t.Fatal(err)
		}
		if beside != nil {
			beside(command)
		}
		return command.Wait() == nil
	}
	if !run(meanwhile) {
		f.until("end of the growth", func() bool { return run(nil) })
	}
	f.count = f.table().Count()
	if left := f.table().Unsplit(); len(left) > 0 || fmt.Sprint(f.count) != to {
		f.t.Errorf("the command ended with %s", f.table())
	}
	return time.Since(began)
}

// stepDown makes another node the leader of a stream.
func (f *workerFleet) stepDown(name string) {
	f.t.Helper()
	was := f.cluster.Leader(f.t.Context(), f.js, name)
	f.until("another leader", func() bool {
		_, err := f.nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+name, nil, time.Second)
		return err == nil && f.cluster.Leader(f.t.Context(), f.js, name) != was
	})
}

// checkOrder finds outcomes of a session that are stored before those of an earlier event, in whatever partitions.
func (f *workerFleet) checkOrder() {
	f.t.Helper()
	last := map[events.Address]uint64{}
	err := stream.ReadStream(f.t.Context(), f.js, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, seq uint64) error {
		at, err := events.ParseOutcome(m.Subject())
		if err != nil || at.Kind == events.KindErased {
			return nil //nolint:nilerr // of a marker alone
		}
		var body struct {
			Cause events.Cause `json:"caused_by"`
		}
		if err := json.Unmarshal(m.Data(), &body); err != nil {
			return err
		}
		if body.Cause.Seq < last[at.Address] {
			f.add(otherOrder, "%s at %d: of event %d after %d", m.Subject(), seq, body.Cause.Seq, last[at.Address])
		}
		last[at.Address] = max(last[at.Address], body.Cause.Seq)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// syncers are agents that sync their histories, and begin a new session after some calls.
type syncers struct {
	t      *testing.T
	nc     *nats.Conn
	cancel context.CancelFunc
	limit  *rate.Limiter
	wg     sync.WaitGroup

	mu        sync.Mutex             // guards the fields below
	histories map[string][]codec.Raw // by session, as far as they were answered
	answered  int
	longest   time.Duration // since it was read
}

// syncCalls is how many calls a session has. Only the last one of each shows a turn that is lost: the next call would
// bring it again.
const syncCalls = 6

func newSyncers(t *testing.T, url string, agents int, perSecond rate.Limit) *syncers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s := &syncers{t: t, cancel: cancel, limit: rate.NewLimiter(perSecond, 10), histories: map[string][]codec.Raw{}}
	s.nc, _ = workertest.Dial(t, url)
	for i := range agents {
		s.wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.session(ctx, fmt.Sprintf("synced-%d-%d", i, n))
			}
		})
	}
	return s
}

// session syncs a history that grows with each call. A call is repeated until a worker has answered it, and decided it:
// the turn of one that is late may be refused, where another worker has taken over.
func (s *syncers) session(ctx context.Context, name string) {
	var history []codec.Raw
	for n := 0; n < syncCalls && s.limit.Wait(ctx) == nil; n++ {
		history = append(history, codec.Raw(fmt.Sprintf(`{"role":"user","content":"question %d of %s"}`, n, name)),
			codec.Raw(fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, n)))
		messages, err := codec.Marshal(history)
		if err != nil {
			panic(err) // raw JSON can be written
		}
		request := fmt.Appendf(nil, `{"session":%q,"model":{"provider":"openai","name":"gpt-4o"},"wait_ms":8000,"messages":%s}`, name, messages)
		began := time.Now()
		for answered := false; !answered; {
			one, cancel := context.WithTimeout(ctx, 10*time.Second)
			m, err := s.nc.RequestWithContext(one, events.SubjectSync, request)
			cancel()
			if ctx.Err() != nil {
				return
			}
			if answered = err == nil && isAnswer(m); !answered {
				time.Sleep(20 * time.Millisecond) // as a client does
			}
		}
		s.note(name, history, time.Since(began))
	}
}

// isAnswer reports whether a sync was answered, and not late.
func isAnswer(m *nats.Msg) bool {
	var out events.SyncResponse
	return m.Header.Get("Nats-Service-Error-Code") == "" && codec.Unmarshal(m.Data, &out) == nil &&
		!slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == events.CodeLate })
}

func (s *syncers) note(name string, history []codec.Raw, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histories[name] = slices.Clone(history)
	s.answered++
	s.longest = max(s.longest, took)
}

// slowest is the longest time until an answer since the last call.
func (s *syncers) slowest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.longest
	s.longest = 0
	return d
}

func (s *syncers) done() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}

// await waits for so many answers more.
func (s *syncers) await(n int) {
	s.t.Helper()
	upTo := s.done() + n
	workertest.Until(s.t, fmt.Sprintf("%d syncs are answered", upTo), func() bool { return s.done() >= upTo })
}

func (s *syncers) stop() {
	s.cancel()
	s.wg.Wait()
}

// compare finds sessions that are not the history of their agent, each message once. A call that was not answered may
// have added its two.
func (s *syncers) compare(k *killing) {
	s.t.Helper()
	for name, history := range s.histories {
		var c events.ContextResponse
		request := fmt.Appendf(nil, `{"session":%q,"generation":0}`, name)
		for deadline := time.Now().Add(workertest.WaitLimit); ; workertest.Pause(s.t, 20*time.Millisecond) {
			m, err := s.nc.Request("compactd.context", request, workertest.WaitLimit)
			if err == nil && m.Header.Get("Nats-Service-Error-Code") == "" {
				err = codec.Unmarshal(m.Data, &c)
			} else if err == nil {
				err = fmt.Errorf("%s", m.Data)
			}
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				s.t.Fatalf("context of %s: %v", name, err)
			}
		}
		got, want := events.OpenAI.DigestOf(c.Messages[:min(len(c.Messages), len(history))]), events.OpenAI.DigestOf(history)
		if len(c.Messages) > len(history)+2 || got != want {
			k.add(lostSync, "%s has %d messages of %d, answered as of %d; the log has%s", name, len(c.Messages), len(history), c.Through.Seq, s.logged(name))
		}
	}
}

// logged lists the events of a session.
func (s *syncers) logged(name string) (out string) {
	s.t.Helper()
	a := events.Address{Tenant: events.DefaultTenant, Session: name}
	err := stream.ReadSubject(s.t.Context(), s.nc, topology.LogStream, events.LoggedAnywhere("*", a), 1, func(m stream.LogMessage) error {
		out += fmt.Sprintf(" %d %s,", m.Seq, m.Subject)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// A version that does not know growth refuses a log that grows, and states why (P26).
func TestFaultGrownRefusesOlder(t *testing.T) {
	t.Parallel()
	older := buildIn(t, treeBefore(t, "P26", "--diff-filter=A", "--", "../../events/partitions/doc.go"))
	f := newWorkerFleet(t, older.worker(), time.Second, nil)
	old := f.workers[0]
	old.start()
	old.awaitReady()
	old.terminate()
	if _, err := topology.Grow(t.Context(), f.js); err != nil {
		t.Fatal(err)
	}
	old.start()
	refused := old.awaitReadyOrEnd()
	if refused == nil || !strings.Contains(old.log.text(), "streams do not fit: SESSIONS: subject transform is ") {
		t.Errorf("an older worker is not refused: %v\n%s", refused, old.log.text())
	}
	accepted := 0
	if refused == nil {
		accepted = 1
	}
	figures.Print(t, "P26", "older", 1, "accepted", accepted)
}
