package scenarios_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// A worker with its server in one process is killed ten times while agents publish.
// Acknowledged turns are in the log, and the outcomes are those that follow from the log
// alone, each once.
func TestKill(t *testing.T) {
	t.Parallel()
	r := killing{sessions: 36, kills: 10}
	r.run(t, buildWorker(t))
	for _, v := range r.violations {
		t.Error(v)
	}
	found := r.found()
	figures.Print(t, "P1", "kills", r.kills, "before_up", r.early, "acks", r.acks, "lost", found[lostTurn], "outcomes", r.outcomes,
		"jobs", r.jobs, "twice", found[twiceStored], "missing", found[missing], "received", r.received, "received_twice", found[twiceReceived])
	if r.acks == 0 || r.outcomes == 0 || r.jobs == 0 || r.received == 0 {
		t.Error("a count is zero: the test shows nothing")
	}
}

// The same with a worker that ignores its marker, and decides again what is published. A check
// that finds nothing here would find nothing anywhere.
func TestKillNoticesIgnoredMarker(t *testing.T) {
	t.Parallel()
	r := killing{sessions: 8, kills: 3, env: []string{"COMPACTD_FAULT=ignore-marker"}}
	r.run(t, buildWorker(t, "-tags", "faults"))
	found := r.found()
	t.Logf("marker ignored: %d kills, %d outcomes stored; found %v", r.kills, r.outcomes, found)
	missed := 0
	if found[twiceStored] == 0 {
		missed = 1
		t.Error("outcomes were published twice, and the check did not find it")
	}
	if found[lostTurn] > 0 {
		t.Error("the planted defect loses no turns, and the check reports lost turns")
	}
	figures.Print(t, "P16", "planted", 1, "caught", 1-missed, "missed", missed)
}

// Kinds of violations.
const (
	lostTurn      = "acknowledged turn is not in the log"
	notInLog      = "outcome does not follow from the log"
	missing       = "outcome is missing"
	twiceStored   = "outcome is stored twice"
	otherBytes    = "outcome has other bytes than decided again from the log"
	otherOrder    = "outcomes are in another order than decided again from the log"
	notCommitted  = "outcome was received and is not stored"
	twiceReceived = "outcome was received twice"
	unanswered    = "job has no result in the log"
	notTrusted    = "ledger file was quarantined"
	otherReplay   = "outcome differs between a start from a checkpoint and one from zero"
)

// violation is one broken promise, with its kind.
type violation struct{ kind, what string }

func (v violation) String() string { return v.kind + ": " + v.what }

// killing is one run: its parameters, its counts and its violations.
type killing struct {
	sessions, kills int
	env             []string

	early                                  int // kills before the worker had published anything
	acks, events, outcomes, jobs, received int
	results                                map[string]int // summaries in the log, by job
	resultsDue                             bool           // every job must have one
	violations                             []violation
}

// turnsPerSecond is low enough that the log can be decided again quickly.
const turnsPerSecond = 1500

func (k *killing) run(t *testing.T, bin string) {
	data := t.TempDir()
	p := &process{t: t, bin: bin, data: data, listen: workertest.FreePort(t), env: k.env}
	p.start()
	t.Cleanup(p.kill)
	p.awaitReady()
	sub := newSubscriber(t, p.url())
	agents := newAgentFleet(t, p.url(), k.sessions, turnsPerSecond)
	r := rand.New(rand.NewPCG(1, uint64(k.kills)))
	for n := range k.kills {
		sub.await(sub.count() + 1 + r.IntN(120))
		workertest.Pause(t, time.Duration(r.IntN(20_000))*time.Microsecond)
		p.kill()
		p.start()
		if n%3 == 2 { // once more before it is ready
			workertest.Pause(t, time.Duration(r.IntN(300))*time.Millisecond)
			p.kill()
			p.start()
			k.early++
		}
	}
	sub.await(sub.count() + 1)
	acks := agents.stop()
	awaitDecided(t, p.url())
	p.terminate()
	k.audit(t, filepath.Join(data, "nats"), acks, sub.stop())
}

// awaitDecided waits until the workers have decided every event of the log, and the log does
// not grow any more, for as long as outcomes are stored.
func awaitDecided(t *testing.T, url string) {
	t.Helper()
	nc, js := workertest.Dial(t, url)
	defer nc.Close()
	limited := func(do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), workertest.WaitLimit) // for each step: summaries go on coming
		defer cancel()
		return do(ctx)
	}
	await := func(do func(context.Context) error) {
		t.Helper()
		for before := uint64(0); ; {
			err := limited(do)
			if err == nil {
				return
			}
			var outcomes topology.StreamState
			if !errors.Is(err, context.DeadlineExceeded) || limited(func(ctx context.Context) (err error) {
				outcomes, err = topology.State(ctx, js, topology.OutcomesStream)
				return err
			}) != nil || outcomes.Last == before {
				t.Fatal(err)
			}
			before = outcomes.Last
		}
	}
	var streams *topology.Streams
	await(func(ctx context.Context) (err error) {
		streams, err = topology.Describe(ctx, js)
		return err
	})
	for last := uint64(0); ; {
		var end uint64
		await(func(ctx context.Context) error {
			state, err := topology.State(ctx, js, topology.LogStream)
			end = state.Last
			return err
		})
		if end == last {
			return
		}
		last = end
		await(func(ctx context.Context) error { return commit.AwaitCursor(ctx, js, streams.Partitions, last) })
	}
}

// audit compares acknowledgements and received outcomes with a copy of the server's streams. It
// also compares the stored outcomes with those decided again from the log and the texts of
// the configs.
func (k *killing) audit(t *testing.T, dir string, acks []ack, received []*nats.Msg) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	k.auditStreams(workertest.Open(t, embedded.Config{Dir: copied}, topology.Config{}), acks, received)
}

// auditStreams is audit on the streams of an environment; it purges their outcomes.
func (k *killing) auditStreams(env *workertest.Env, acks []ack, received []*nats.Msg) {
	env.T.Helper()
	k.acks, k.received = len(acks), len(received)
	k.compareLog(env, acks)
	stored := env.OutcomesBySession()
	k.compareReceived(stored, received)
	purgeOutcomes(env)
	env.Config = env.OnlyConfig()
	redecided := workertest.BySession(env.Redecided())
	for _, a := range slices.SortedFunc(maps.Keys(merged(redecided, stored)), func(a, b workertest.Place) int { return strings.Compare(a.String(), b.String()) }) {
		k.outcomes += len(stored[a])
		for _, o := range stored[a] {
			if !o.IsJob() {
				continue
			}
			k.jobs++
			if k.resultsDue && k.results[o.ID] == 0 {
				k.add(unanswered, "%s of %s", o.ID, o.Subject)
			}
		}
		k.compareOutcomes(a, redecided[a], stored[a])
	}
}

func merged[K comparable, V any](a, b map[K]V) map[K]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// found counts the violations by kind.
func (k *killing) found() map[string]int {
	out := map[string]int{}
	for _, v := range k.violations {
		out[v.kind]++
	}
	return out
}

func (k *killing) add(kind, format string, args ...any) {
	k.violations = append(k.violations, violation{kind: kind, what: fmt.Sprintf(format, args...)})
}

func (k *killing) compareLog(env *workertest.Env, acks []ack) {
	env.T.Helper()
	type entry struct {
		at   events.Location
		data []byte
	}
	log := map[uint64]entry{}
	k.results = map[string]int{}
	err := stream.ReadStream(env.T.Context(), env.JS, topology.LogStream, "log.>", 1, 0, func(m jetstream.Msg, seq uint64) error {
		at, err := events.ParseLog(m.Subject())
		log[seq] = entry{at: at, data: m.Data()}
		if at.Kind == events.KindSummary {
			s, err := events.DecodeSummary(m.Data())
			if err != nil {
				return err
			}
			k.results[s.Job]++
		}
		return err
	})
	if err != nil {
		env.T.Fatal(err)
	}
	k.events = len(log)
	for _, a := range acks {
		e, ok := log[a.seq]
		subject := events.Published(e.at.Kind, e.at.Address)
		switch {
		case !ok:
			k.add(lostTurn, "%s at %d", a.subject, a.seq)
		case subject != a.subject || !bytes.Equal(e.data, a.data):
			k.add(lostTurn, "%s at %d: another event is there, of %s", a.subject, a.seq, subject)
		}
	}
}

func (k *killing) compareReceived(stored map[workertest.Place][]workertest.Outcome, received []*nats.Msg) {
	byID := map[string]workertest.Outcome{} // by id
	for _, all := range stored {
		for _, o := range all {
			if !o.IsJob() {
				byID[o.ID] = o
			}
		}
	}
	seen := map[string]int{}
	for _, m := range received {
		o := workertest.NewOutcome(m.Subject, m.Data)
		if seen[o.ID]++; seen[o.ID] == 2 {
			k.add(twiceReceived, "%s on %s", o.ID, m.Subject)
		}
		if b, ok := byID[o.ID]; !ok || b.Data != o.Data || "session."+afterToken(b.Subject, 2) != m.Subject {
			k.add(notCommitted, "%s on %s", o.ID, m.Subject)
		}
	}
}

// afterToken drops the first n tokens of a subject.
func afterToken(subject string, n int) string { return strings.SplitN(subject, ".", n+1)[n] }

func (k *killing) compareOutcomes(a workertest.Place, redecided, stored []workertest.Outcome) {
	first := map[string]workertest.Outcome{} // of what is stored, by id
	var once []string
	for _, o := range stored {
		if _, twice := first[o.ID]; twice {
			k.add(twiceStored, "%s of %s", o.ID, o.Subject)
			continue
		}
		first[o.ID] = o
		once = append(once, o.ID)
	}
	var ids []string
	for _, o := range redecided {
		s, ok := first[o.ID]
		delete(first, o.ID)
		switch {
		case !ok:
			k.add(missing, "%s of %s", o.ID, o.Subject)
			continue
		case s != o:
			k.add(otherBytes, "%s of %s", o.ID, o.Subject)
		}
		ids = append(ids, o.ID)
	}
	for id, o := range first {
		k.add(notInLog, "%s of %s", id, o.Subject)
		once = slices.DeleteFunc(once, func(s string) bool { return s == id })
	}
	if !slices.Equal(ids, once) {
		k.add(otherOrder, "%s", a)
	}
}

// purgeOutcomes purges every outcome and every marker.
func purgeOutcomes(env *workertest.Env) {
	env.T.Helper()
	s, err := env.JS.Stream(env.T.Context(), topology.OutcomesStream)
	if err != nil {
		env.T.Fatal(err)
	}
	for p := range env.Streams.Partitions.Count() {
		if err := s.Purge(env.T.Context(), jetstream.WithPurgeSubject(events.OutcomeFilter(p))); err != nil {
			env.T.Fatal(err)
		}
	}
	workertest.Until(env.T, "no outcome is left", func() bool { return len(env.OutcomesBySession()) == 0 }) // a copy may be behind
}
