//go:build faults

package worker_test

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
	"compactd/internal/testkit/cluster"
	"compactd/internal/testkit/figures"
)

// Three workers share a log on one server. They are killed, restarted, frozen until
// others have their partitions and then let go on, and asked to leave, while agents
// publish; then their server goes away, for a moment and for longer than a lease.
// Nothing is lost or told twice, and no frozen owner writes anything after it was
// replaced (P6).
func TestFaultFleet(t *testing.T) {
	t.Parallel()
	c := newCrew(t, buildWorker(t, "-tags", "faults"), 2*time.Second, nil)
	c.begin()
	for range 4 {
		c.killed(c.one())
		c.restarted(c.one())
		c.left(c.one())
	}
	for c.zombies < 6 {
		c.frozen(c.some())
	}
	c.restartServer(0)
	c.restartServer(2 * c.lease) // every lease and every membership ends
	c.end()
	c.report(t, "kills", c.kills, "leaves", len(c.leaves))
	fmt.Printf("takeover_ms after kill -9, lease %s: p50 %d, p99 %d (%d partitions)\n", c.lease, c.ms(c.deaths, 50), c.ms(c.deaths, 99), len(c.deaths))
	fmt.Printf("takeover_ms after a graceful leave: p50 %d, p99 %d (%d partitions)\n", c.ms(c.leaves, 50), c.ms(c.leaves, 99), len(c.leaves))
	if len(c.deaths) == 0 || len(c.leaves) == 0 || c.epochs < 3*c.zombies {
		t.Error("the test saw nothing of something")
	}
	if leave, death := c.ms(c.leaves, 50), c.ms(c.deaths, 50); leave >= death {
		t.Errorf("a graceful leave takes %d ms, a death %d ms: the others wait for the end of its leases", leave, death)
	}
}

// The same with many more frozen owners.
func TestSoakFleet(t *testing.T) {
	t.Parallel()
	c := newCrew(t, buildWorker(t, "-tags", "faults"), time.Second, nil)
	c.begin()
	for c.zombies < 65 {
		c.frozen(c.some())
	}
	c.end()
	c.report(t)
}

// report fails the test for every violation and prints the figures of P6.
func (c *crew) report(t *testing.T, more ...any) {
	t.Helper()
	for _, v := range c.violations {
		t.Error(v)
	}
	found := c.found()
	figures.Print(t, "P6", slices.Concat([]any{
		"zombies", c.zombies, "takeovers", c.epochs, "stale", found[staleWrite], "acks", c.acks, "lost", found[lostTurn], "outcomes", c.outcomes,
		"twice", found[twiceStored], "missing", found[missing], "violations", len(c.violations),
	}, more)...)
	if c.acks == 0 || c.outcomes == 0 || c.heard == 0 {
		t.Error("the test saw nothing of something")
	}
}

// Without the fence frozen owners do write after they were replaced, and the checks
// above see it.
func TestFaultFleetUnfenced(t *testing.T) {
	t.Parallel()
	c := newCrew(t, buildWorker(t, "-tags", "faults"), time.Second, []string{"COMPACTD_FAULT=no-fence"})
	c.begin()
	for c.zombies < 3 {
		c.frozen(c.some())
	}
	c.end()
	found := c.found()
	t.Logf("without the fence: %d zombies, %d outcomes stored; found %v", c.zombies, c.outcomes, found)
	figures.Print(t, "P6", "zombies", c.zombies, "stale", found[staleWrite], "twice", found[twiceStored], "other_order", found[otherOrder])
	missed := 0
	if found[staleWrite] == 0 || found[twiceStored]+found[otherOrder] == 0 {
		t.Error("owners that were replaced wrote, and the check did not notice")
		missed = 1
	}
	figures.Print(t, "P16", "planted", 1, "caught", 1-missed, "missed", missed)
	if found[lostTurn] > 0 {
		t.Error("the planted defect loses no turns, yet the check says so")
	}
}

// staleWrite is the violation that a fence keeps from happening.
const staleWrite = "owner wrote after it was replaced"

const crewPartitions = 6

// crew is three worker processes on one server.
type crew struct {
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
	skew    map[*process]time.Duration // how far the clock of a worker is fast
	nc      *nats.Conn
	js      jetstream.JetStream
	workers []*process
	ears    *ears
	agents  *fleet

	zombies, epochs int
	deaths, leaves  []time.Duration // from the death or the signal until another one serves, by partition
}

func newCrew(t *testing.T, bin string, lease time.Duration, env []string) *crew {
	t.Helper()
	c := newIdleCrew(t, lease)
	c.dir, c.listen = t.TempDir(), freePort(t)
	c.startServer()
	t.Cleanup(func() { c.server.Stop() })
	c.sign(bin, env, 1)
	return c
}

func newIdleCrew(t *testing.T, lease time.Duration) *crew {
	return &crew{t: t, lease: lease, rnd: rand.New(rand.NewPCG(6, 1))}
}

// sign makes the streams, with so many copies, and the workers.
func (c *crew) sign(bin string, env []string, replicas int) {
	c.t.Helper()
	c.nc, c.js = dial(c.t, c.url())
	var err error
	c.until("streams", func() bool { // a node of a cluster may seem to be away at first
		c.streams, err = topology.Ensure(c.t.Context(), c.js, topology.Config{Partitions: crewPartitions, Replicas: replicas, CreateBytes: 1 << 30})
		return err == nil
	})
	for range 3 {
		p := &process{t: c.t, bin: bin, data: c.t.TempDir(), env: env, args: []string{"--nats", c.url(), "--lease-ttl", c.lease.String()}}
		c.workers = append(c.workers, p)
		c.t.Cleanup(p.kill)
	}
}

func (c *crew) url() string {
	if c.cluster != nil {
		return c.cluster.URL()
	}
	return c.server.ClientURL()
}

func (c *crew) startServer() {
	c.t.Helper()
	var err error
	if c.server, err = embedded.Start(embedded.Config{Dir: c.dir, Listen: c.listen}); err != nil {
		c.t.Fatal(err)
	}
}

// restartServer takes the server away for a while, with everybody connected.
func (c *crew) restartServer(away time.Duration) {
	c.t.Helper()
	c.work()
	c.server.Stop()
	pause(c.t, away)
	c.startServer()
	c.work()
	c.awaitBalance()
}

// begin starts everybody.
func (c *crew) begin() {
	c.t.Helper()
	for _, p := range c.workers {
		p.start()
	}
	c.awaitBalance()
	c.ears = newEars(c.t, c.url())
	c.agents = newFleet(c.t, c.url(), 24, 300)
	c.ears.await(1)
}

// end stops everybody in good order and checks what they did.
func (c *crew) end() {
	c.t.Helper()
	c.ears.await(c.ears.count() + 1)
	acks := c.agents.stop()
	for c.stopWorkers(); c.undecided() > 0; c.stopWorkers() { // a summary may come to the log as they stop
		for _, p := range c.workers {
			p.start()
		}
		c.awaitBalance()
	}
	c.checkEpochs()
	heard := c.ears.stop()
	if c.cluster != nil {
		c.auditWorld(&world{t: c.t, conn: c.nc, js: c.js, streams: c.streams}, acks, heard)
		return
	}
	c.nc.Close()
	c.server.Stop()
	c.audit(c.t, c.dir, acks, heard)
}

// stopWorkers stops all of them when what is in the log is decided.
func (c *crew) stopWorkers() {
	c.t.Helper()
	settle(c.t, c.url())
	for _, p := range c.workers {
		select {
		case err := <-p.exited:
			c.t.Fatalf("a worker ended by itself: %v\n%s", err, p.log.text())
		default:
			p.terminate()
		}
	}
}

// undecided counts the events of the log behind the markers.
func (c *crew) undecided() (n uint64) {
	c.t.Helper()
	for id := range crewPartitions {
		m, err := commit.LastMarker(c.t.Context(), c.nc, id)
		if err != nil {
			c.t.Fatal(err)
		}
		behind, err := stream.Behind(c.t.Context(), c.js, id, m.Cursor)
		if err != nil {
			c.t.Fatal(err)
		}
		if n += behind; behind > 0 {
			c.t.Logf("partition %d was stopped %d events behind its log, at %d", id, behind, m.Cursor)
		}
	}
	return n
}

// checkEpochs finds commits of an owner that came after those of a later one.
func (c *crew) checkEpochs() {
	c.t.Helper()
	newest := map[string]uint64{} // by partition
	err := stream.ReadStream(c.t.Context(), c.js, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, seq uint64) error {
		marker, ok, err := commit.ParseMarker(m.Headers())
		if err != nil || !ok {
			return err
		}
		partition := strings.Split(m.Subject(), ".")[1]
		if marker.Epoch < newest[partition] {
			c.add(staleWrite, "%s at %d: epoch %d after %d", m.Subject(), seq, marker.Epoch, newest[partition])
		}
		newest[partition] = max(newest[partition], marker.Epoch)
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, epoch := range newest {
		c.epochs += int(epoch)
	}
}

// one returns a worker, some one or two.
func (c *crew) one() *process { return c.workers[c.rnd.IntN(len(c.workers))] }

func (c *crew) some() []*process {
	i := c.rnd.IntN(len(c.workers))
	out := []*process{c.workers[i]}
	if c.rnd.IntN(2) == 0 {
		out = append(out, c.workers[(i+1)%len(c.workers)])
	}
	return out
}

// killed ends a worker for good, until the others have its partitions.
func (c *crew) killed(p *process) {
	c.t.Helper()
	c.work()
	held, since := heldBy(p), time.Now()
	p.kill()
	c.kills++
	c.deaths = append(c.deaths, c.awaitServed(held, since, p)...)
	p.start()
	c.awaitBalance()
}

// restarted ends a worker that comes back at once.
func (c *crew) restarted(p *process) {
	c.t.Helper()
	c.work()
	p.kill()
	c.kills++
	p.start()
	c.awaitBalance()
}

// left asks a worker to stop.
func (c *crew) left(p *process) {
	c.t.Helper()
	c.work()
	held, since := heldBy(p), time.Now()
	p.signal(syscall.SIGTERM)
	c.leaves = append(c.leaves, c.awaitServed(held, since, p)...)
	if err := <-p.exited; err != nil {
		c.t.Errorf("the worker did not stop in good order: %v\n%s", err, p.log.text())
	}
	p.start()
	c.awaitBalance()
}

// frozen stops workers at whatever they do, until others have their partitions, and
// lets them go on.
func (c *crew) frozen(all []*process) {
	c.t.Helper()
	c.work()
	since := time.Now()
	var held []int
	for _, p := range all {
		held = append(held, heldBy(p)...)
	}
	for _, p := range all {
		p.signal(syscall.SIGSTOP)
		c.zombies++
	}
	c.awaitServed(held, since, all...)
	c.work()
	for _, p := range all {
		p.signal(syscall.SIGCONT)
	}
	c.awaitBalance()
}

// work lets a random number of outcomes be told.
func (c *crew) work() {
	c.t.Helper()
	c.ears.await(c.ears.count() + 1 + c.rnd.IntN(20))
	pause(c.t, time.Duration(c.rnd.IntN(50_000))*time.Microsecond)
}

// said is what a worker's log says of a partition.
type said struct {
	Message   string    `json:"message"`
	Time      time.Time `json:"time"`
	Partition int       `json:"partition"`
	Acquired  string    `json:"acquired"` // those of a start: 0-3,6
}

// each returns a line of many partitions as one of each.
func (s said) each(t *testing.T) []said {
	t.Helper()
	if s.Acquired == "" {
		return []said{s}
	}
	var out []said
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
			out = append(out, said{Message: "partition acquired", Time: s.Time, Partition: id})
		}
	}
	return out
}

// tenures reads what a worker says it got and gave up, in order.
func tenures(p *process) []said {
	var out []said
	for line := range strings.Lines(p.log.text()) {
		var s said
		if (strings.Contains(line, `"partition `) || strings.Contains(line, `"partitions acquired"`)) &&
			json.Unmarshal([]byte(line), &s) == nil { // the last line may be half of one
			out = append(out, s.each(p.t)...)
		}
	}
	return out
}

// heldBy lists what a worker says it serves.
func heldBy(p *process) []int {
	held := map[int]bool{}
	for _, s := range tenures(p) {
		if delete(held, s.Partition); s.Message == "partition acquired" {
			held[s.Partition] = true
		}
	}
	return slices.Sorted(maps.Keys(held))
}

// shares lists who serves what.
func (c *crew) shares() (all [][]int) {
	for _, p := range c.workers {
		all = append(all, heldBy(p))
	}
	return all
}

// awaitBalance waits until everybody has its share, and every partition one owner.
func (c *crew) awaitBalance() {
	c.t.Helper()
	c.until("balance", func() bool {
		shares := c.shares()
		sorted := slices.Sorted(slices.Values(slices.Concat(shares...)))
		return len(sorted) == crewPartitions && len(slices.Compact(sorted)) == crewPartitions &&
			!slices.ContainsFunc(shares, func(s []int) bool { return len(s) != crewPartitions/len(shares) })
	})
}

// positions says how far each partition is behind.
func (c *crew) positions() string {
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	state, err := topology.State(ctx, c.js, topology.LogStream)
	out := fmt.Sprintf("the log ends at %d (%v); markers", state.Last, err)
	for id := range crewPartitions {
		m, err := commit.LastMarker(ctx, c.nc, id)
		out += fmt.Sprintf("; %d: cursor %d epoch %d %s (%v)", id, m.Cursor, m.Epoch, time.Since(m.Time).Round(time.Millisecond), err)
	}
	leases, err := c.js.Stream(ctx, "KV_"+topology.LeasesBucket)
	if err != nil {
		return fmt.Sprintf("%s; leases: %v", out, err)
	}
	for id := range crewPartitions {
		m, err := leases.GetLastMsgForSubject(ctx, fmt.Sprintf("$KV.%s.%d", topology.LeasesBucket, id))
		if err != nil {
			out += fmt.Sprintf("; lease %d: %v", id, err)
			continue
		}
		out += fmt.Sprintf("; lease %d: %s %v, %s old", id, m.Data, m.Header, time.Since(m.Time).Round(time.Millisecond))
	}
	return out
}

// troubles are the last lines that do not tell of daily work.
func (l *lines) troubles(n int) string {
	var out []string
	for line := range strings.Lines(l.text()) {
		if !strings.Contains(line, `"summary done"`) && !strings.Contains(line, `"session compacted"`) {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-n):], "")
}

func (c *crew) until(what string, ok func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(waitLimit); !ok(); pause(c.t, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			for i, p := range c.workers {
				c.t.Logf("worker %d says at last:\n%s", i, p.log.troubles(12))
			}
			c.t.Log(c.positions())
			c.t.Fatalf("no %s; served are %v", what, c.shares())
		}
	}
}

// awaitServed waits until workers other than the victims say that they serve
// partitions since a moment, and returns how long each took.
func (c *crew) awaitServed(partitions []int, since time.Time, victims ...*process) []time.Duration {
	c.t.Helper()
	took := map[int]time.Duration{}
	c.until("take-over", func() bool {
		for _, p := range c.workers {
			if slices.Contains(victims, p) {
				continue
			}
			for _, s := range tenures(p) {
				d := s.Time.Add(-c.skew[p]).Sub(since)
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
func (c *crew) ms(all []time.Duration, percent int) int64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)-1, len(all)*percent/100)].Milliseconds()
}
