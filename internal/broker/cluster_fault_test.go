//go:build faults

package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/cluster"
	"compactd/internal/testkit/figures"
)

// recoveryGoal is how long a commit should take at most during which the leader crashes
// or is cut off. It is printed, and fails no test: seconds depend on the machine.
const recoveryGoal = 12 * time.Second

// A cluster loses the leader of OUTCOMES in the middle of commits, by crashes and by
// a cut, again and again: every commit is stored once, in order, and goes on
// (P13).
func TestFaultClusterLosesLeader(t *testing.T) {
	w := newClusterEnv(t)
	c, reopened := w.takeOver("a"), 0
	var want []string
	var recovery [2][]time.Duration
	next := func() time.Duration {
		began := time.Now()
		batch := 1 + len(want)%3
		var messages []commit.Message
		for range batch {
			want = append(want, strconv.Itoa(len(want)))
			messages = append(messages, clusterMessage(want[len(want)-1]))
		}
		marker := commit.Marker{Cursor: uint64(len(want))}
		err := c.Commit(t.Context(), messages, marker)
		for errors.Is(err, commit.ErrDiverged) { // a new leader may answer before it has applied all it has: begin again, as a worker does
			reopened++
			var found commit.Stored
			if c, found, err = commit.TakeOver(t.Context(), w.connect(), w.claim("a")); err == nil && found.Cursor < marker.Cursor {
				err = c.Commit(t.Context(), messages, marker)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	for round := range 6 {
		for range 100 {
			next()
		}
		i := w.cluster.Leader(t.Context(), w.js, topology.OutcomesStream)
		lose, back := w.cluster.Kill, w.cluster.Restart
		if round%2 == 1 {
			lose, back = w.cluster.Cut, w.cluster.Heal
		}
		lost := make(chan struct{})
		go func() { lose(i); close(lost) }()
		var reading sync.WaitGroup
		reading.Go(func() { // a read waits for the next leader; one whose connection ended does not
			if _, err := w.read(); jsapi.HasCode(err, jsapi.CodeNoLeader, jsapi.CodeNotLeader) {
				t.Error(err)
			}
		})
		var slowest time.Duration
		for under, more := true, 100; more > 0; {
			slowest = max(slowest, next()) // one of them is under way as it happens
			select {
			case <-lost:
				under = false
			default:
			}
			if !under {
				more--
			}
		}
		reading.Wait()
		recovery[round%2] = append(recovery[round%2], slowest.Round(time.Millisecond))
		back(i)
		w.awaitReplicas()
	}
	different := 0
	if diff := cmp.Diff(want, w.stored()); diff != "" {
		t.Errorf("stored is not what was committed (-committed +stored):\n%s", diff)
		different = 1
	}
	figures.Print(t, "P13", "kills", len(recovery[0]), "cuts", len(recovery[1]), "outcomes", len(want), "different", different,
		"recovery_ms", slices.Max(slices.Concat(recovery[0], recovery[1])).Milliseconds())
	t.Logf("%d outcomes; slowest commit around a kill %v, around a cut %v; reopened %d times; retries: %s", len(want), recovery[0], recovery[1], reopened, w.retries())
	t.Logf("slowest of all %v, goal %s", slices.Max(slices.Concat(recovery[0], recovery[1])), recoveryGoal)
}

// Owners that race for a partition of a cluster get answers that a single server
// never gives; what is stored is still of one owner at a time, in the order of
// their epochs.
func TestFaultClusterRace(t *testing.T) {
	w := newClusterEnv(t)
	var mu sync.Mutex
	committed := map[string]bool{}
	fenced := 0
	var owners, done atomic.Int64
	var racing sync.WaitGroup
	for o := range 4 {
		nc := w.connect()
		racing.Go(func() {
			defer done.Add(1)
			for turn := range 20 {
				owner := fmt.Sprintf("o%d-%d", o, turn)
				c, _, err := commit.TakeOver(t.Context(), nc, w.claim(owner))
				if err != nil {
					t.Error(err)
					return
				}
				mine := owners.Add(1)
				for n := range 40 { // or until another one has it
					for turn%2 == 0 && n == 20 && owners.Load() == mine && done.Load() < 3 {
						time.Sleep(time.Millisecond) // a takeover waits for commits: let it come
					}
					text := fmt.Sprintf("%d %s %d", c.Epoch(), owner, n)
					err := c.Commit(t.Context(), []commit.Message{clusterMessage(text), clusterMessage(text + "b")}, commit.Marker{Cursor: uint64(n)})
					mu.Lock()
					if err == nil {
						committed[text], committed[text+"b"] = true, true
					} else {
						fenced++
					}
					mu.Unlock()
					if err != nil {
						if !errors.Is(err, commit.ErrFenced) {
							t.Error(err)
						}
						break
					}
				}
			}
		})
	}
	racing.Wait()
	var epoch uint64
	stored := w.stored()
	for _, text := range stored {
		var e uint64
		if _, err := fmt.Sscan(text, &e); err != nil {
			t.Fatal(err)
		}
		if e < epoch {
			t.Errorf("%q is stored after epoch %d", text, epoch)
		}
		if epoch = e; !committed[text] {
			t.Errorf("%q is stored, or stored twice, and was not acknowledged", text)
		}
		delete(committed, text)
	}
	if len(committed) > 0 {
		t.Errorf("%d outcomes were acknowledged and are not stored", len(committed))
	}
	t.Logf("%d outcomes of 80 owners, %d fenced; retries: %s", len(stored), fenced, w.retries())
	if fenced == 0 {
		t.Error("no owner was fenced: there was no race")
	}
}

// clusterEnv is a cluster with both streams on three nodes.
type clusterEnv struct {
	t       *testing.T
	cluster *cluster.Cluster
	js      jetstream.JetStream

	mu    sync.Mutex
	tries map[string]int // by why they failed
}

func newClusterEnv(t *testing.T) *clusterEnv {
	t.Helper()
	w := &clusterEnv{t: t, cluster: cluster.Start(t), tries: map[string]int{}}
	w.js = brokertest.NewJS(t, w.connect())
	if _, err := topology.Ensure(t.Context(), w.js, topology.Config{Partitions: 4, Replicas: cluster.Nodes, CreateBytes: brokertest.CreateBytes}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *clusterEnv) connect() *nats.Conn {
	w.t.Helper()
	nc, err := connect.Open(w.t.Context(), connect.Options{URL: w.cluster.URL()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

func (w *clusterEnv) claim(owner string) commit.Claim {
	return commit.Claim{Partition: 1, Owner: owner, Config: "cfg", ReplyTimeout: time.Second, OnRetry: func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		why := "no answer"
		if api, ok := errors.AsType[*jetstream.APIError](err); ok {
			why = strconv.Itoa(int(api.ErrorCode))
		}
		w.tries[why]++
	}}
}

func (w *clusterEnv) takeOver(owner string) *commit.Committer {
	w.t.Helper()
	c, _, err := commit.TakeOver(w.t.Context(), w.connect(), w.claim(owner))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *clusterEnv) retries() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimPrefix(fmt.Sprint(w.tries), "map")
}

// awaitReplicas waits until all nodes have all of OUTCOMES: one more lost would
// otherwise leave no majority.
func (w *clusterEnv) awaitReplicas() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		one, end := context.WithTimeout(ctx, time.Second) // without a leader there is no answer
		s, err := w.js.Stream(one, topology.OutcomesStream)
		end()
		if err == nil && s.CachedInfo().Cluster != nil && jsapi.HasQuorum(s.CachedInfo().Cluster) {
			current := func(p *jetstream.PeerInfo) bool { return p.Current && !p.Offline }
			if r := s.CachedInfo().Cluster.Replicas; len(r) == cluster.Nodes-1 && current(r[0]) && current(r[1]) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("the replicas do not catch up: %v", err)
		}
	}
}

// stored lists the outcomes of partition 1 in their order.
func (w *clusterEnv) stored() []string {
	w.t.Helper()
	out, err := w.read()
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *clusterEnv) read() (out []string, err error) {
	err = stream.ReadStream(w.t.Context(), w.js, topology.OutcomesStream, events.OutcomeFilter(1), 0, 0, func(m jetstream.Msg, _ uint64) error {
		if len(m.Data()) > 0 {
			out = append(out, string(m.Data()))
		}
		return nil
	})
	return out, err
}

func clusterMessage(text string) commit.Message {
	return commit.Message{Subject: events.Outcome(1, events.KindBudget, events.Address{Tenant: "t", Session: "s"}), Data: []byte(text)}
}
