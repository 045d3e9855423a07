package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"compactd/internal/broker"
	"compactd/internal/events"
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
	fmt.Printf("kill: %d kills after progress, %d during recovery; %d turns acknowledged, %d lost; %d events in the log; %d outcomes stored, %d twice, %d missing; %d heard, %d twice\n",
		r.kills, r.early, r.acks, found[lostTurn], r.events, r.outcomes, found[twiceStored], found[missing], r.heard, found[twiceHeard])
	if r.acks == 0 || r.outcomes == 0 || r.heard == 0 {
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
	fmt.Printf("kill, marker ignored: %d kills, %d outcomes stored; found %v\n", r.kills, r.outcomes, found)
	if found[twiceStored] == 0 {
		t.Error("outcomes were told twice, and the check did not notice")
	}
	if found[lostTurn] > 0 {
		t.Error("the planted defect loses no turns, yet the check says so")
	}
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
)

// violation is one promise that was not kept.
type violation struct{ kind, what string }

func (v violation) String() string { return v.kind + ": " + v.what }

// killing is one run: what is asked for, and what came of it.
type killing struct {
	sessions, kills int
	env             []string

	early                         int // kills before the worker had told anything
	acks, events, outcomes, heard int
	violations                    []violation
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
	f := newFleet(t, p.url(), k.sessions)
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
	streams, err := broker.Look(ctx, js)
	if err != nil {
		t.Fatal(err)
	}
	for last := uint64(0); ; {
		state, err := broker.State(ctx, js, broker.LogStream)
		if err != nil {
			t.Fatal(err)
		}
		if state.Last == last {
			return
		}
		last = state.Last
		if err := broker.AwaitCursor(ctx, js, streams.Partitions, last); err != nil {
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
	w := openWorld(t, broker.ServerConfig{Dir: folder}, broker.Topology{})
	k.acks, k.heard = len(acks), len(heard)
	k.compareLog(w, acks)
	stored := w.toldBySession()
	k.compareHeard(stored, heard)
	w.forgetOutcomes()
	w.config = w.onlyConfig()
	said := bySession(w.redecided())
	for _, a := range slices.SortedFunc(maps.Keys(merged(said, stored)), func(a, b place) int { return strings.Compare(a.String(), b.String()) }) {
		k.outcomes += len(stored[a])
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
	k.violations = append(k.violations, violation{kind, fmt.Sprintf(format, args...)})
}

func (k *killing) compareLog(w *world, acks []ack) {
	w.t.Helper()
	type entry struct {
		at   events.Location
		data []byte
	}
	log := map[uint64]entry{}
	err := broker.ReadStream(w.t.Context(), w.js, broker.LogStream, "log.>", 1, 0, func(m jetstream.Msg, seq uint64) error {
		at, err := events.ParseLog(m.Subject())
		log[seq] = entry{at, m.Data()}
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
			bodies[o.id] = o
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
	return outcome{subject, h.ID, string(data)}
}

// place is where the outcomes of a session have an order: one partition. What
// has no address is rejected in the partition of its subject.
type place struct {
	partition int
	address   events.Address
}

// placeOf is false for a job, which is not told to agents.
func placeOf(subject string) (place, bool) {
	at, err := events.ParseOutcome(subject)
	return place{at.Partition, at.Address}, err == nil && slices.Contains(events.OutcomeKinds, at.Kind)
}

func (p place) String() string { return fmt.Sprintf("%d.%s", p.partition, p.address) }

// toldBySession reads what is stored, in the order of its commits.
func (w *world) toldBySession() map[place][]outcome {
	w.t.Helper()
	out := map[place][]outcome{}
	err := broker.ReadStream(w.t.Context(), w.js, broker.OutcomesStream, events.OutcomesFilter, 1, 0, func(m jetstream.Msg, _ uint64) error {
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
	s, err := w.js.Stream(w.t.Context(), broker.OutcomesStream)
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

// process is the worker's binary, on a folder and a port that stay the same.
type process struct {
	t                 *testing.T
	bin, data, listen string
	env               []string

	cmd    *exec.Cmd
	log    *lines
	exited chan error
}

func (p *process) url() string { return "nats://" + p.listen }

func (p *process) start() {
	p.t.Helper()
	p.log = &lines{more: make(chan struct{}, 1)}
	p.cmd = exec.Command(p.bin, "--data", p.data, "--listen", p.listen, "--partitions", "4", "--log-format", "json")
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	cmd, exited := p.cmd, make(chan error, 1)
	p.exited = exited
	go func() { exited <- cmd.Wait() }()
}

func (p *process) awaitReady() {
	p.t.Helper()
	deadline := time.After(waitLimit)
	for !p.log.contains(`"message":"ready"`) {
		select {
		case <-p.log.more:
		case err := <-p.exited:
			p.t.Fatalf("the worker ended: %v\n%s", err, p.log.text())
		case <-deadline:
			p.t.Fatalf("the worker is not ready\n%s", p.log.text())
		}
	}
}

// kill ends the process as a crash would, and waits until it is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
	p.cmd = nil
}

// terminate asks the process to stop, and wants it to do so without an error.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := <-p.exited; err != nil {
		p.t.Errorf("the worker did not stop in good order: %v\n%s", err, p.log.text())
	}
	p.cmd = nil
}

// lines is what a process has written.
type lines struct {
	mu   sync.Mutex // guards buf
	buf  bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.buf.Write(b)
}

func (l *lines) contains(s string) bool { return strings.Contains(l.text(), s) }

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// buildWorker builds the worker's binary.
func buildWorker(t *testing.T, flags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "worker")
	args := append([]string{"build", "-buildvcs=false", "-o", bin}, flags...)
	if out, err := exec.CommandContext(t.Context(), "go", append(args, "compactd/cmd/worker")...).CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	return bin
}

// freePort finds an address that a process can keep over its restarts.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// dial opens a connection that comes back for ever, and soon.
func dial(t *testing.T, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(10*time.Millisecond, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// ears is a plain subscriber to all outcomes.
type ears struct {
	t    *testing.T
	nc   *nats.Conn
	more chan struct{}

	mu    sync.Mutex // guards heard
	heard []*nats.Msg
}

func newEars(t *testing.T, url string) *ears {
	t.Helper()
	nc, _ := dial(t, url)
	e := &ears{t: t, nc: nc, more: make(chan struct{}, 1)}
	for _, k := range events.OutcomeKinds {
		s, err := nc.Subscribe(events.Published(k, events.Address{Tenant: "*", Session: "*"}), e.hear)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetPendingLimits(-1, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *ears) hear(m *nats.Msg) {
	e.mu.Lock()
	e.heard = append(e.heard, m)
	e.mu.Unlock()
	select {
	case e.more <- struct{}{}:
	default:
	}
}

func (e *ears) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.heard)
}

// await waits until n outcomes were heard in all.
func (e *ears) await(n int) {
	e.t.Helper()
	deadline := time.After(waitLimit)
	for e.count() < n {
		select {
		case <-e.more:
		case <-deadline:
			e.t.Fatalf("heard %d outcomes, not %d: no progress", e.count(), n)
		}
	}
}

func (e *ears) stop() []*nats.Msg {
	e.nc.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard
}

// ack is one acknowledged turn.
type ack struct {
	subject string
	seq     uint64
	data    []byte
}

// fleet is a number of agents on a few connections, that publish until they are
// stopped. A turn without acknowledgement is sent again: with a message id in
// every other session, without one in the others.
type fleet struct {
	t      *testing.T
	conns  []*nats.Conn
	cancel context.CancelFunc
	limit  *rate.Limiter
	wg     sync.WaitGroup

	mu   sync.Mutex // guards acks
	acks []ack
}

func newFleet(t *testing.T, url string, sessions int) *fleet {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fleet{t: t, cancel: cancel, limit: rate.NewLimiter(turnsPerSecond, 10)}
	t.Cleanup(cancel)
	for range 4 {
		nc, _ := dial(t, url)
		f.conns = append(f.conns, nc)
	}
	for s := range sessions {
		js, err := jetstream.New(f.conns[s%len(f.conns)])
		if err != nil {
			t.Fatal(err)
		}
		f.wg.Go(func() { f.agent(ctx, js, s) })
	}
	return f
}

func (f *fleet) agent(ctx context.Context, js jetstream.JetStream, session int) {
	subject := events.Published(events.KindTurn, events.Address{Tenant: fmt.Sprintf("t%d", session%3), Session: fmt.Sprintf("s%d", session)})
	for n := 1; f.limit.Wait(ctx) == nil; n++ {
		m := &nats.Msg{Subject: subject, Data: agentTurn(session, n), Header: nats.Header{}}
		if session%2 == 0 {
			m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("s%d-%d", session, n))
		}
		for ctx.Err() == nil {
			one, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			a, err := js.PublishMsg(one, m)
			cancel()
			if err == nil {
				f.note(ack{subject, a.Sequence, m.Data})
				break
			}
		}
	}
}

func (f *fleet) note(a ack) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acks = append(f.acks, a)
}

// stop ends the agents and returns their acknowledgements. What they have sent
// has come to the server then.
func (f *fleet) stop() []ack {
	f.t.Helper()
	f.cancel()
	f.wg.Wait()
	for _, nc := range f.conns {
		for err := nc.FlushTimeout(waitLimit); err != nil; err = nc.FlushTimeout(waitLimit) {
			if nc.IsClosed() || errors.Is(err, nats.ErrTimeout) {
				f.t.Fatal(err)
			} // else it was just coming back
		}
		nc.Close()
	}
	return f.acks
}

// agentTurn is turn n of a session: larger in sessions of a higher number, in
// one of three forms, with a window that a few turns fill.
func agentTurn(session, n int) []byte {
	text := strings.Repeat(fmt.Sprintf("word %d of %d. ", n, session), 10+3*session)
	path := fmt.Sprintf("src/file%d.go", n%5)
	const head = `{"v":1,"id":"%d-%d","turn":%d,"model":{"provider":%q,"name":%q,"max_output_tokens":500,"context_window":6000},`
	switch session % 3 {
	case 0:
		return fmt.Appendf(nil, head+`"messages":[{"role":"user","content":%q},`+
			`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"read_file","input":{"path":%q}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":%q}]},{"role":"assistant","content":"read it"}]}`,
			session, n, n, "anthropic", "claude-sonnet-4-20250514", text[:len(text)/4], n, path, n, text)
	case 1:
		return fmt.Appendf(nil, head+`"messages":[{"role":"user","content":%q},`+
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read_file","arguments":%q}}]},`+
			`{"role":"tool","tool_call_id":"c%d","content":%q},{"role":"assistant","content":"read it"}]}`,
			session, n, n, "openai", "gpt-4o", text[:len(text)/4], n, fmt.Sprintf(`{"path":%q}`, path), n, text)
	default:
		return fmt.Appendf(nil, head+`"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`,
			session, n, n, "openai", "gpt-4o", text, text)
	}
}
