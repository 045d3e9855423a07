//go:build faults

package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/cluster"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// Three workers share a log on one server, while agents publish. Workers are killed, restarted,
// stopped, and frozen until others have their partitions. Then the server restarts, at once and
// after longer than a lease. Nothing is lost or published twice, and no frozen owner commits
// anything after it was replaced (P6).
func TestFaultFleet(t *testing.T) {
	t.Parallel()
	f := newWorkerFleet(t, buildWorker(t, "-tags", "faults"), 2*time.Second, nil)
	f.begin()
	for range 4 {
		f.kill(f.randomWorker())
		f.restart(f.randomWorker())
		f.leave(f.randomWorker())
	}
	for f.zombies < 6 {
		f.freeze(f.randomWorkers())
	}
	f.restartServer(0)
	f.restartServer(2 * f.lease) // every lease and every membership expires
	f.end()
	f.report(t, "kills", f.kills, "leaves", len(f.leaves))
	fmt.Printf("takeover_ms after kill -9, lease %s: p50 %d, p99 %d (%d partitions)\n", f.lease, f.ms(f.crashes, 50), f.ms(f.crashes, 99), len(f.crashes))
	fmt.Printf("takeover_ms after a graceful leave: p50 %d, p99 %d (%d partitions)\n", f.ms(f.leaves, 50), f.ms(f.leaves, 99), len(f.leaves))
	if len(f.crashes) == 0 || len(f.leaves) == 0 || f.epochs < 3*f.zombies {
		t.Error("a count is zero: the test shows nothing")
	}
	if leave, crash := f.ms(f.leaves, 50), f.ms(f.crashes, 50); leave >= crash {
		t.Errorf("a take-over takes %d ms after a graceful leave and %d ms after a crash: the others wait for the leases to expire", leave, crash)
	}
}

// The same as TestFaultFleet, with many more frozen owners.
func TestSoakFleet(t *testing.T) {
	t.Parallel()
	f := newWorkerFleet(t, buildWorker(t, "-tags", "faults"), time.Second, nil)
	f.begin()
	for f.zombies < 65 {
		f.freeze(f.randomWorkers())
	}
	f.end()
	f.report(t)
}

// report fails the test for every violation and prints the figures of P6.
func (f *workerFleet) report(t *testing.T, more ...any) {
	t.Helper()
	for _, v := range f.violations {
		t.Error(v)
	}
	found := f.found()
	figures.Print(t, "P6", slices.Concat([]any{
		"zombies", f.zombies, "takeovers", f.epochs, "stale", found[staleWrite], "acks", f.acks, "lost", found[lostTurn], "outcomes", f.outcomes,
		"twice", found[twiceStored], "missing", found[missing], "violations", len(f.violations),
	}, more)...)
	if f.acks == 0 || f.outcomes == 0 || f.received == 0 {
		t.Error("a count is zero: the test shows nothing")
	}
}

// Without the fence frozen owners do commit after they were replaced, and the checks of
// TestFaultFleet find it.
func TestFaultFleetUnfenced(t *testing.T) {
	t.Parallel()
	f := newWorkerFleet(t, buildWorker(t, "-tags", "faults"), time.Second, []string{"COMPACTD_FAULT=no-fence"})
	f.begin()
	for f.zombies < 3 {
		f.freeze(f.randomWorkers())
	}
	f.end()
	found := f.found()
	t.Logf("without the fence: %d zombies, %d outcomes stored; found %v", f.zombies, f.outcomes, found)
	figures.Print(t, "P6", "zombies", f.zombies, "stale", found[staleWrite], "twice", found[twiceStored], "other_order", found[otherOrder])
	missed := 0
	if found[staleWrite] == 0 || found[twiceStored]+found[otherOrder] == 0 {
		t.Error("owners that were replaced committed, and the check did not find it")
		missed = 1
	}
	figures.Print(t, "P16", "planted", 1, "caught", 1-missed, "missed", missed)
	if found[lostTurn] > 0 {
		t.Error("the planted defect loses no turns, and the check reports lost turns")
	}
}

// staleWrite is the violation that the fence prevents.
const staleWrite = "owner wrote after it was replaced"

const fleetPartitions = 6

// workerFleet is three worker processes on one server.
type workerFleet struct {
	killing
	t       *testing.T
	lease   time.Duration
	rnd     *rand.Rand
	dir     string // of the server
	listen  string // the same
	server  *embedded.Server
	cluster *cluster.Cluster           // in place of the server
	links   map[*process]*cluster.Link // between a worker and the server, where there are any
	streams *topology.Streams
	count   int                        // of partitions
	skew    map[*process]time.Duration // how far the clock of a worker is fast
	nc      *nats.Conn
	js      jetstream.JetStream
	workers []*process
	sub     *subscriber
	agents  *agentFleet

	zombies, epochs int
	crashes, leaves []time.Duration // from the crash or the signal until another worker serves, one for each partition
}

func newWorkerFleet(t *testing.T, bin string, lease time.Duration, env []string) *workerFleet {
	t.Helper()
	f := newIdleFleet(t, lease)
	f.dir, f.listen = t.TempDir(), workertest.FreePort(t)
	f.startServer()
	t.Cleanup(func() { f.server.Stop() })
	f.prepare(bin, env, 1)
	return f
}

func newIdleFleet(t *testing.T, lease time.Duration) *workerFleet {
	return &workerFleet{t: t, lease: lease, count: fleetPartitions, rnd: rand.New(rand.NewPCG(6, 1))}
}

// prepare creates the streams, with so many replicas, and the processes of the workers.
func (f *workerFleet) prepare(bin string, env []string, replicas int) {
	f.t.Helper()
	f.nc, f.js = workertest.Dial(f.t, f.url())
	var err error
	f.until("streams", func() bool { // a node of a cluster may be unreachable at first
		f.streams, err = topology.Ensure(f.t.Context(), f.js, topology.Config{Partitions: fleetPartitions, Replicas: replicas, CreateBytes: 1 << 30})
		return err == nil
	})
	for range 3 {
		p := &process{t: f.t, bin: bin, data: f.t.TempDir(), env: env, args: []string{"--nats", f.url(), "--lease-ttl", f.lease.String()}}
		f.workers = append(f.workers, p)
		f.t.Cleanup(p.kill)
	}
}

func (f *workerFleet) url() string {
	if f.cluster != nil {
		return f.cluster.URL()
	}
	return f.server.ClientURL()
}

func (f *workerFleet) startServer() {
	f.t.Helper()
	var err error
	if f.server, err = embedded.Start(embedded.Config{Dir: f.dir, Listen: f.listen}); err != nil {
		f.t.Fatal(err)
	}
}

// restartServer stops the server for a while, with all clients connected.
func (f *workerFleet) restartServer(away time.Duration) {
	f.t.Helper()
	f.awaitOutcomes()
	f.server.Stop()
	workertest.Pause(f.t, away)
	f.startServer()
	f.awaitOutcomes()
	f.awaitBalance()
}

// begin starts the workers, a subscriber and the agents.
func (f *workerFleet) begin() {
	f.t.Helper()
	for _, p := range f.workers {
		p.start()
	}
	f.awaitBalance()
	f.sub = newSubscriber(f.t, f.url())
	f.agents = newAgentFleet(f.t, f.url(), 24, 300)
	f.sub.await(1)
}

// end stops agents and workers gracefully, and checks what is stored.
func (f *workerFleet) end() {
	f.t.Helper()
	acks, received := f.finish()
	if f.cluster != nil {
		f.auditStreams(f.streamsEnv(), acks, received)
		return
	}
	f.nc.Close()
	f.server.Stop()
	f.audit(f.t, f.dir, acks, received)
}

// streamsEnv reads the streams of the running server.
func (f *workerFleet) streamsEnv() *workertest.Env {
	return &workertest.Env{T: f.t, Conn: f.nc, JS: f.js, Streams: f.streams}
}

// finish stops agents and workers gracefully, with the whole log decided, and returns what the agents
// and the subscriber have.
func (f *workerFleet) finish() (acks []ack, received []*nats.Msg) {
	f.t.Helper()
	f.sub.await(f.sub.count() + 1)
	acks = f.agents.stop()
	for f.stopWorkers(); f.undecided() > 0; f.stopWorkers() { // a summary may be published as they stop
		for _, p := range f.workers {
			p.start()
		}
		f.awaitBalance()
	}
	f.checkEpochs()
	return acks, f.sub.stop()
}

// stopWorkers stops all workers once the log is decided.
func (f *workerFleet) stopWorkers() {
	f.t.Helper()
	awaitDecided(f.t, f.url())
	for _, p := range f.workers {
		select {
		case err := <-p.exited:
			f.t.Fatalf("a worker ended by itself: %v\n%s", err, p.log.text())
		default:
			p.terminate()
		}
	}
}

// undecided counts the events of the log after the markers.
func (f *workerFleet) undecided() (n uint64) {
	f.t.Helper()
	for id := range f.count {
		m, err := commit.LastMarker(f.t.Context(), f.nc, id)
		if err != nil {
			f.t.Fatal(err)
		}
		behind, err := stream.Behind(f.t.Context(), f.js, f.streams.Partitions.Sources(id, m.Cursor), m.Cursor)
		if err != nil {
			f.t.Fatal(err)
		}
		if n += behind; behind > 0 {
			f.t.Logf("partition %d was stopped %d events behind its log, at %d", id, behind, m.Cursor)
		}
	}
	return n
}

// checkEpochs finds commits of an owner that came after those of a later one.
func (f *workerFleet) checkEpochs() {
	f.t.Helper()
	newest := map[string]uint64{} // by partition
	err := stream.ReadStream(f.t.Context(), f.js, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, seq uint64) error {
		var marker commit.Marker
		text := m.Headers().Get(commit.HeaderMarker)
		if text == "" {
			return nil
		}
		if err := codec.Unmarshal([]byte(text), &marker); err != nil {
			return err
		}
		partition := strings.Split(m.Subject(), ".")[1]
		if marker.Epoch < newest[partition] {
			f.add(staleWrite, "%s at %d: epoch %d after %d", m.Subject(), seq, marker.Epoch, newest[partition])
		}
		newest[partition] = max(newest[partition], marker.Epoch)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, epoch := range newest {
		f.epochs += int(epoch)
	}
}

// randomWorker returns one worker, randomWorkers one or two.
func (f *workerFleet) randomWorker() *process { return f.workers[f.rnd.IntN(len(f.workers))] }

func (f *workerFleet) randomWorkers() []*process {
	i := f.rnd.IntN(len(f.workers))
	out := []*process{f.workers[i]}
	if f.rnd.IntN(2) == 0 {
		out = append(out, f.workers[(i+1)%len(f.workers)])
	}
	return out
}

// kill kills a worker, and starts it again once the others have its partitions.
func (f *workerFleet) kill(p *process) {
	f.t.Helper()
	f.awaitOutcomes()
	held, since := heldBy(p), time.Now()
	p.kill()
	f.kills++
	f.crashes = append(f.crashes, f.awaitServed(held, since, p)...)
	p.start()
	f.awaitBalance()
}

// restart kills a worker and starts it again at once.
func (f *workerFleet) restart(p *process) {
	f.t.Helper()
	f.awaitOutcomes()
	p.kill()
	f.kills++
	p.start()
	f.awaitBalance()
}

// leave stops a worker gracefully, and starts it again once the others have its partitions.
func (f *workerFleet) leave(p *process) {
	f.t.Helper()
	f.awaitOutcomes()
	held, since := heldBy(p), time.Now()
	p.signal(syscall.SIGTERM)
	f.leaves = append(f.leaves, f.awaitServed(held, since, p)...)
	if err := <-p.exited; err != nil {
		f.t.Errorf("the worker did not stop gracefully: %v\n%s", err, p.log.text())
	}
	p.start()
	f.awaitBalance()
}

// freeze suspends workers until others have their partitions, and resumes them.
func (f *workerFleet) freeze(all []*process) {
	f.t.Helper()
	f.awaitOutcomes()
	since := time.Now()
	var held []int
	for _, p := range all {
		held = append(held, heldBy(p)...)
	}
	for _, p := range all {
		p.signal(syscall.SIGSTOP)
		f.zombies++
	}
	f.awaitServed(held, since, all...)
	f.awaitOutcomes()
	for _, p := range all {
		p.signal(syscall.SIGCONT)
	}
	f.awaitBalance()
}

// awaitOutcomes waits until a random number of outcomes is published.
func (f *workerFleet) awaitOutcomes() {
	f.t.Helper()
	f.sub.await(f.sub.count() + 1 + f.rnd.IntN(20))
	workertest.Pause(f.t, time.Duration(f.rnd.IntN(50_000))*time.Microsecond)
}

// logLine is a line of a worker's log about partitions.
type logLine struct {
	Message   string    `json:"message"`
	Time      time.Time `json:"time"`
	Partition int       `json:"partition"`
	Acquired  string    `json:"acquired"` // a list, as 0-3,6, in the line of a start
}

// each splits a line about several partitions into one for each.
func (s logLine) each(t *testing.T) []logLine {
	t.Helper()
	if s.Acquired == "" {
		return []logLine{s}
	}
	var out []logLine
	for part := range strings.SplitSeq(s.Acquired, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(to)
		}
		if err != nil {
			t.Fatalf("the log has acquired %q: %v", s.Acquired, err)
		}
		for id := first; id <= last; id++ {
			out = append(out, logLine{Message: "partition acquired", Time: s.Time, Partition: id})
		}
	}
	return out
}

// ownershipLines reads the lines of a worker's log about acquired and released partitions.
func ownershipLines(p *process) []logLine {
	var out []logLine
	for line := range strings.Lines(p.log.text()) {
		var s logLine
		if (strings.Contains(line, `"partition `) || strings.Contains(line, `"partitions acquired"`)) &&
			json.Unmarshal([]byte(line), &s) == nil { // the last line may be half of one
			out = append(out, s.each(p.t)...)
		}
	}
	return out
}

// heldBy lists the partitions that a worker serves, by its log.
func heldBy(p *process) []int {
	held := map[int]bool{}
	for _, s := range ownershipLines(p) {
		if delete(held, s.Partition); s.Message == "partition acquired" {
			held[s.Partition] = true
		}
	}
	return slices.Sorted(maps.Keys(held))
}

// shares lists the partitions of each worker.
func (f *workerFleet) shares() (all [][]int) {
	for _, p := range f.workers {
		all = append(all, heldBy(p))
	}
	return all
}

// awaitBalance waits until every worker has its share, and every partition one owner.
func (f *workerFleet) awaitBalance() {
	f.t.Helper()
	f.until("balance", func() bool {
		shares := f.shares()
		sorted := slices.Sorted(slices.Values(slices.Concat(shares...)))
		return len(sorted) == f.count && len(slices.Compact(sorted)) == f.count &&
			!slices.ContainsFunc(shares, func(s []int) bool { return len(s) != f.count/len(shares) })
	})
}

// positions describes how far each partition is behind, and who holds its lease.
func (f *workerFleet) positions() string {
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	state, err := topology.State(ctx, f.js, topology.LogStream)
	out := fmt.Sprintf("the log ends at %d (%v); markers", state.Last, err)
	for id := range f.count {
		m, err := commit.LastMarker(ctx, f.nc, id)
		out += fmt.Sprintf("; %d: cursor %d epoch %d %s (%v)", id, m.Cursor, m.Epoch, time.Since(m.Time).Round(time.Millisecond), err)
	}
	leases, err := f.js.Stream(ctx, "KV_"+topology.LeasesBucket)
	if err != nil {
		return fmt.Sprintf("%s; leases: %v", out, err)
	}
	for id := range f.count {
		m, err := leases.GetLastMsgForSubject(ctx, fmt.Sprintf("$KV.%s.%d", topology.LeasesBucket, id))
		if err != nil {
			out += fmt.Sprintf("; lease %d: %v", id, err)
			continue
		}
		out += fmt.Sprintf("; lease %d: %s %v, %s old", id, m.Data, m.Header, time.Since(m.Time).Round(time.Millisecond))
	}
	return out
}

// lastUnusual returns the last n lines, without those of ordinary work.
func (l *lines) lastUnusual(n int) string {
	var out []string
	for line := range strings.Lines(l.text()) {
		if !strings.Contains(line, `"summary done"`) && !strings.Contains(line, `"session compacted"`) {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-n):], "")
}

func (f *workerFleet) until(what string, ok func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(workertest.WaitLimit); !ok(); workertest.Pause(f.t, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			for i, p := range f.workers {
				f.t.Logf("the last lines of worker %d:\n%s", i, p.log.lastUnusual(12))
			}
			f.t.Log(f.positions())
			f.t.Fatalf("no %s in time; the workers serve %v", what, f.shares())
		}
	}
}

// awaitServed waits until workers other than the victims have acquired partitions after a
// moment, and returns how long each took.
func (f *workerFleet) awaitServed(partitions []int, since time.Time, victims ...*process) []time.Duration {
	f.t.Helper()
	took := map[int]time.Duration{}
	f.until("take-over", func() bool {
		for _, p := range f.workers {
			if slices.Contains(victims, p) {
				continue
			}
			for _, s := range ownershipLines(p) {
				d := s.Time.Add(-f.skew[p]).Sub(since)
				if s.Message == "partition acquired" && d > 0 && slices.Contains(partitions, s.Partition) {
					took[s.Partition] = d
				}
			}
		}
		return len(took) == len(partitions)
	})
	return slices.Collect(maps.Values(took))
}

// ms is a percentile in milliseconds.
func (f *workerFleet) ms(all []time.Duration, percent int) int64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)-1, len(all)*percent/100)].Milliseconds()
}
