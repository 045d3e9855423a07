//go:build faults

package scenarios_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/cluster"
	"compactd/internal/testkit/figures"
)

// Three workers on a cluster of three servers, every stream with three copies. Both
// are killed, alone and together (P1), and the leader of OUTCOMES is cut off from the
// others and from its clients (P13): nothing that was acknowledged is lost, nothing is
// published twice, and turns are answered again soon.
func TestFaultClusterFleet(t *testing.T) {
	t.Parallel()
	f := newClusterFleet(t, buildWorker(t, "-tags", "faults"), 2*time.Second)
	f.begin()
	nodes, both := 0, 0
	var recovery []time.Duration
	for round := range 12 {
		for range 3 {
			f.restart(f.randomWorker())
		}
		f.loseNode(f.rnd.IntN(cluster.Nodes), nil)
		nodes++
		if round%2 == 0 {
			f.loseNode(f.leader(), f.randomWorker())
			nodes, both = nodes+1, both+1
		}
		if round%3 == 2 {
			recovery = append(recovery, f.cutLeader())
		}
	}
	f.awaitBalance()
	f.end()
	for _, v := range f.violations {
		t.Error(v)
	}
	slowest := time.Duration(0)
	for _, d := range recovery {
		slowest = max(slowest, d)
	}
	found := f.found()
	figures.Print(t, "P1", "replicas", cluster.Nodes, "kills", f.kills+nodes, "workers", f.kills, "nodes", nodes, "both", both,
		"acks", f.acks, "lost", found[lostTurn], "outcomes", f.outcomes, "twice", found[twiceStored], "missing", found[missing],
		"stale", found[staleWrite], "violations", len(f.violations))
	figures.Print(t, "P13", "cuts", len(recovery), "kills", nodes, "acks", f.acks, "lost", found[lostTurn],
		"recovery_ms", slowest.Milliseconds())
	if f.acks == 0 || f.outcomes == 0 || f.received == 0 {
		t.Error("a count is zero: the test shows nothing")
	}
}

func newClusterFleet(t *testing.T, bin string, lease time.Duration) *workerFleet {
	t.Helper()
	f := newIdleFleet(t, lease)
	f.cluster = cluster.Start(t)
	f.prepare(bin, nil, cluster.Nodes)
	return f
}

func (f *workerFleet) leader() int {
	return f.cluster.Leader(f.t.Context(), f.js, topology.OutcomesStream)
}

// loseNode kills a node, and a worker with it unless p is nil, and restarts the node once
// outcomes were published without it.
func (f *workerFleet) loseNode(i int, p *process) {
	f.t.Helper()
	f.awaitOutcomes()
	f.cluster.Kill(i)
	if p != nil {
		p.kill()
		f.kills++
		p.start()
	}
	f.awaitOutcomes()
	f.cluster.Restart(i)
	f.awaitReplicas()
}

// cutLeader cuts the leader of OUTCOMES off, and returns how long it takes until turns that
// were acknowledged after the cut have outcomes, in every partition.
func (f *workerFleet) cutLeader() time.Duration {
	f.t.Helper()
	f.awaitOutcomes()
	i := f.leader()
	began := time.Now()
	f.cluster.Cut(i)
	newest := f.agents.newest()
	f.until("outcomes of later turns in every partition", func() bool { return f.sub.partitionsAfter(newest) == fleetPartitions })
	took := time.Since(began)
	f.cluster.Heal(i)
	f.awaitReplicas()
	return took
}

// newest is the sequence of the last turn that was acknowledged.
func (f *agentFleet) newest() (seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.acks {
		seq = max(seq, a.seq)
	}
	return seq
}

// partitionsAfter counts the partitions of which outcomes of later events were received.
func (sub *subscriber) partitionsAfter(seq uint64) int {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	found := map[int]bool{}
	for i := len(sub.received) - 1; i >= 0 && len(found) < fleetPartitions; i-- {
		var body struct {
			Cause events.Cause `json:"caused_by"`
		}
		_, at, err := events.ParsePublished(sub.received[i].Subject)
		if err == nil {
			err = codec.Unmarshal(sub.received[i].Data, &body)
		}
		if err == nil && body.Cause.Seq > seq {
			found[events.PartitionOf(at, fleetPartitions)] = true
		}
		if len(sub.received)-i > 5000 {
			break
		}
	}
	return len(found)
}

// awaitReplicas waits until every node has all of every stream. Otherwise the loss of another
// node would leave no majority.
func (f *workerFleet) awaitReplicas() {
	f.t.Helper()
	missing := ""
	defer func() {
		if f.t.Failed() {
			f.t.Log(missing)
		}
	}()
	f.until("replicas", func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		for _, name := range []string{topology.LogStream, topology.OutcomesStream, "KV_" + topology.LeasesBucket, "KV_" + topology.MembersBucket} {
			s, err := f.js.Stream(ctx, name)
			if err != nil {
				missing = fmt.Sprintf("state of %s: %v", name, err)
				return false
			}
			if missing = incomplete(s.CachedInfo()); missing != "" {
				return false
			}
		}
		return true
	})
}

// incomplete returns what a stream lacks, "" for nothing.
func incomplete(i *jetstream.StreamInfo) string {
	if i.Cluster == nil || len(i.Cluster.Replicas) != cluster.Nodes-1 {
		return i.Config.Name + " has other copies"
	}
	for _, r := range i.Cluster.Replicas {
		if !r.Current || r.Offline {
			return fmt.Sprintf("%s is led by %s, and %+v", i.Config.Name, i.Cluster.Leader, *r)
		}
	}
	return ""
}
