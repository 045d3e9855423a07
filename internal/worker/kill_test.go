package worker_test

import (
	"bytes"
	"context"
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
)

// A worker with its server in one process is killed ten times while a fleet
// publishes. What was acknowledged is in the log, and what was told is what the
// log alone says, once.
func TestKill(t *testing.T) {
	t.Parallel()
	r := killing{sessions: 36, kills: 10}
	r.run(t, buildWorker(t))
	for _, v := range r.violations {
		t.Error(v)
	}
	found := r.found()
	figures.Print(t, "P1", "kills", r.kills, "before_up", r.early, "acks", r.acks, "lost", found[lostTurn], "outcomes", r.outcomes,
		"jobs", r.jobs, "twice", found[twiceStored], "missing", found[missing], "heard", r.heard, "heard_twice", found[twiceHeard])
	if r.acks == 0 || r.outcomes == 0 || r.jobs == 0 || r.heard == 0 {
		t.Error("nothing happened: the test saw nothing")
	}
}

// The same, with a worker that decides again what its marker says is told. A
// check that finds nothing here would find nothing anywhere.
func TestKillNoticesIgnoredMarker(t *testing.T) {
	t.Parallel()
	r := killing{sessions: 8, kills: 3, env: []string{"COMPACTD_FAULT=ignore-marker"}}
	r.run(t, buildWorker(t, "-tags", "faults"))
	found := r.found()
	t.Logf("marker ignored: %d kills, %d outcomes stored; found %v", r.kills, r.outcomes, found)
	missed := 0
	if found[twiceStored] == 0 {
		missed = 1
		t.Error("outcomes were told twice, and the check did not notice")
	}
	if found[lostTurn] > 0 {
		t.Error("the planted defect loses no turns, yet the check says so")
	}
	figures.Print(t, "P16", "planted", 1, "caught", 1-missed, "missed", missed)
}

// Kinds of violations.
const (
	lostTurn     = "acknowledged turn is not in the log"
	notInLog     = "outcome does not follow from the log"
	missing      = "outcome is missing"
	twiceStored  = "outcome is stored twice"
	otherBytes   = "outcome has other bytes than the log says"
	otherOrder   = "outcomes are in another order than the log says"
	notCommitted = "outcome was heard and is not stored"
	twiceHeard   = "outcome was heard twice"
	unanswered   = "job has no result in the log"
	notTrusted   = "ledger file was quarantined"
	otherReplay  = "outcome differs between a start from a checkpoint and one from zero"
)

// violation is one promise that was not kept.
type violation struct{ kind, what string }

func (v violation) String() string { return v.kind + ": " + v.what }

// killing is one run: what is asked for, and what came of it.
type killing struct {
	sessions, kills int
	env             []string

	early                               int // kills before the worker had told anything
	acks, events, outcomes, jobs, heard int
	results                             map[string]int // summaries in the log, by job
	answered                            bool           // every job must have one
	violations                          []violation
}

// turnsPerSecond keeps the log small enough to be decided again in a moment.
const turnsPerSecond = 1500

func (k *killing) run(t *testing.T, bin string) {
	data := t.TempDir()
	p := &process{t: t, bin: bin, data: data, listen: freePort(t), env: k.env}
	p.start()
	t.Cleanup(p.kill)
	p.awaitReady()
	e := newEars(t, p.url())
	f := newFleet(t, p.url(), k.sessions, turnsPerSecond)
	r := rand.New(rand.NewPCG(1, uint64(k.kills)))
	for n := range k.kills {
		e.await(e.count() + 1 + r.IntN(120))
		pause(t, time.Duration(r.IntN(20_000))*time.Microsecond)
		p.kill()
		p.start()
		if n%3 == 2 { // once more before it is up, or while it is coming up
			pause(t, time.Duration(r.IntN(300))*time.Millisecond)
			p.kill()
			p.start()
			k.early++
		}
	}
	e.await(e.count() + 1)
	acks := f.stop()
	settle(t, p.url())
	p.terminate()
	k.audit(t, filepath.Join(data, "nats"), acks, e.stop())
}

// pause lets a random time pass: the moment of a kill is what is varied here,
// nothing is waited for.
func pause(t *testing.T, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// settle waits until the workers have decided on all that is in the log, and
// nothing more comes.
func settle(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	nc, js := dial(t, url)
	defer nc.Close()
	streams, err := topology.Describe(ctx, js)
	if err != nil {
		t.Fatal(err)
	}
	for last := uint64(0); ; {
		state, err := topology.State(ctx, js, topology.LogStream)
		if err != nil {
			t.Fatal(err)
		}
		if state.Last == last {
			return
		}
		last = state.Last
		if err := commit.AwaitCursor(ctx, js, streams.Partitions, last); err != nil {
			t.Fatal(err)
		}
	}
}

// audit compares the ledger of acknowledgements and what was heard with a copy
// of what the server has, and the outcomes there with those that its log alone
// says: only the texts of configs are kept for that.
func (k *killing) audit(t *testing.T, dir string, acks []ack, heard []*nats.Msg) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(folder, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	k.auditWorld(openWorld(t, embedded.Config{Dir: folder}, topology.Config{}), acks, heard)
}

// auditWorld is audit on streams that nobody needs any more.
func (k *killing) auditWorld(w *world, acks []ack, heard []*nats.Msg) {
	w.t.Helper()
	k.acks, k.heard = len(acks), len(heard)
	k.compareLog(w, acks)
	stored := w.toldBySession()
	k.compareHeard(stored, heard)
	w.forgetOutcomes()
	w.config = w.onlyConfig()
	said := bySession(w.redecided())
	for _, a := range slices.SortedFunc(maps.Keys(merged(said, stored)), func(a, b place) int { return strings.Compare(a.String(), b.String()) }) {
		k.outcomes += len(stored[a])
		for _, o := range stored[a] {
			if !o.isJob() {
				continue
			}
			k.jobs++
			if k.answered && k.results[o.id] == 0 {
				k.add(unanswered, "%s of %s", o.id, o.subject)
			}
		}
		k.compareOutcomes(a, said[a], stored[a])
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

func (k *killing) compareLog(w *world, acks []ack) {
	w.t.Helper()
	type entry struct {
		at   events.Location
		data []byte
	}
	log := map[uint64]entry{}
	k.results = map[string]int{}
	err := stream.ReadStream(w.t.Context(), w.js, topology.LogStream, "log.>", 1, 0, func(m jetstream.Msg, seq uint64) error {
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
		w.t.Fatal(err)
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

func (k *killing) compareHeard(stored map[place][]outcome, heard []*nats.Msg) {
	bodies := map[string]outcome{} // by id
	for _, all := range stored {
		for _, o := range all {
			if !o.isJob() {
				bodies[o.id] = o
			}
		}
	}
	seen := map[string]int{}
	for _, m := range heard {
		o := newOutcome(m.Subject, m.Data)
		if seen[o.id]++; seen[o.id] == 2 {
			k.add(twiceHeard, "%s on %s", o.id, m.Subject)
		}
		if b, ok := bodies[o.id]; !ok || b.data != o.data || "session."+afterToken(b.subject, 2) != m.Subject {
			k.add(notCommitted, "%s on %s", o.id, m.Subject)
		}
	}
}

// afterToken drops the first n tokens of a subject.
func afterToken(subject string, n int) string { return strings.SplitN(subject, ".", n+1)[n] }

func (k *killing) compareOutcomes(a place, said, stored []outcome) {
	first := map[string]outcome{} // of what is stored, by id
	var once []string
	for _, o := range stored {
		if _, twice := first[o.id]; twice {
			k.add(twiceStored, "%s of %s", o.id, o.subject)
			continue
		}
		first[o.id] = o
		once = append(once, o.id)
	}
	var ids []string
	for _, o := range said {
		s, ok := first[o.id]
		delete(first, o.id)
		switch {
		case !ok:
			k.add(missing, "%s of %s", o.id, o.subject)
			continue
		case s != o:
			k.add(otherBytes, "%s of %s", o.id, o.subject)
		}
		ids = append(ids, o.id)
	}
	for id, o := range first {
		k.add(notInLog, "%s of %s", id, o.subject)
		once = slices.DeleteFunc(once, func(s string) bool { return s == id })
	}
	if !slices.Equal(ids, once) {
		k.add(otherOrder, "%s", a)
	}
}

// outcome is one outcome as it is stored, or as the log says.
type outcome struct{ subject, id, data string }

func newOutcome(subject string, data []byte) outcome {
	var h events.Header
	if err := events.Unmarshal(data, &h); err != nil {
		h.ID = "unreadable: " + err.Error()
	}
	return outcome{subject: subject, id: h.ID, data: string(data)}
}

// place is where the outcomes of a session have an order: one partition. What
// has no address is rejected in the partition of its subject.
type place struct {
	partition int
	address   events.Address
}

// placeOf is false for what is no outcome and no job.
func placeOf(subject string) (place, bool) {
	at, err := events.ParseOutcome(subject)
	return place{partition: at.Partition, address: at.Address}, err == nil && (at.Kind == events.KindJob || slices.Contains(events.OutcomeKinds, at.Kind))
}

// isJob reports whether an outcome is a job, which agents are not told.
func (o outcome) isJob() bool {
	_, _, err := events.ParseJob(o.subject)
	return err == nil
}

func (p place) String() string { return fmt.Sprintf("%d.%s", p.partition, p.address) }

// toldBySession reads what is stored, in the order of its commits.
func (w *world) toldBySession() map[place][]outcome {
	w.t.Helper()
	out := map[place][]outcome{}
	err := stream.ReadStream(w.t.Context(), w.js, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, _ uint64) error {
		if p, ok := placeOf(m.Subject()); ok {
			out[p] = append(out[p], newOutcome(m.Subject(), m.Data()))
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func bySession(all []outcome) map[place][]outcome {
	out := map[place][]outcome{}
	for _, o := range all {
		if p, ok := placeOf(o.subject); ok {
			out[p] = append(out[p], o)
		}
	}
	return out
}

// forgetOutcomes purges everything told and every marker.
func (w *world) forgetOutcomes() {
	w.t.Helper()
	s, err := w.js.Stream(w.t.Context(), topology.OutcomesStream)
	if err != nil {
		w.t.Fatal(err)
	}
	for p := range w.streams.Partitions {
		if err := s.Purge(w.t.Context(), jetstream.WithPurgeSubject(events.OutcomeFilter(p))); err != nil {
			w.t.Fatal(err)
		}
	}
	if left := w.toldBySession(); len(left) > 0 {
		w.t.Fatalf("%d sessions have outcomes after a purge of all", len(left))
	}
}
