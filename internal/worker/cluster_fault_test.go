//go:build faults

package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/cluster"
	"compactd/internal/testkit/figures"
)

// Three workers on a cluster of three servers, every stream with three copies. Both
// are killed, alone and together (P1), and the leader of OUTCOMES is cut off from the
// others and from its clients (P13): nothing that was acknowledged is lost, nothing is
// published twice, and turns are answered again soon.
func TestFaultClusterFleet(t *testing.T) {
	t.Parallel()
	c := newClusterCrew(t, buildWorker(t, "-tags", "faults"), 2*time.Second)
	c.begin()
	nodes, both := 0, 0
	var recovery []time.Duration
	for round := range 12 {
		for range 3 {
			c.restarted(c.one())
		}
		c.loseNode(c.rnd.IntN(cluster.Nodes), nil)
		nodes++
		if round%2 == 0 {
			c.loseNode(c.leader(), c.one())
			nodes, both = nodes+1, both+1
		}
		if round%3 == 2 {
			recovery = append(recovery, c.cutLeader())
		}
	}
	c.awaitBalance()
	c.end()
	for _, v := range c.violations {
		t.Error(v)
	}
	slowest := time.Duration(0)
	for _, d := range recovery {
		slowest = max(slowest, d)
	}
	found := c.found()
	figures.Print(t, "P1", "replicas", cluster.Nodes, "kills", c.kills+nodes, "workers", c.kills, "nodes", nodes, "both", both,
		"acks", c.acks, "lost", found[lostTurn], "outcomes", c.outcomes, "twice", found[twiceStored], "missing", found[missing],
		"stale", found[staleWrite], "violations", len(c.violations))
	figures.Print(t, "P13", "cuts", len(recovery), "kills", nodes, "acks", c.acks, "lost", found[lostTurn],
		"recovery_ms", slowest.Milliseconds())
	if c.acks == 0 || c.outcomes == 0 || c.heard == 0 {
		t.Error("the test saw nothing of something")
	}
}

func newClusterCrew(t *testing.T, bin string, lease time.Duration) *crew {
	t.Helper()
	c := newIdleCrew(t, lease)
	c.cluster = cluster.Start(t)
	c.sign(bin, nil, cluster.Nodes)
	return c
}

func (c *crew) leader() int {
	return c.cluster.Leader(c.t.Context(), c.js, topology.OutcomesStream)
}

// loseNode kills a node, and a worker with it, for as long as it takes to publish
// something without them.
func (c *crew) loseNode(i int, p *process) {
	c.t.Helper()
	c.work()
	c.cluster.Kill(i)
	if p != nil {
		p.kill()
		c.kills++
		p.start()
	}
	c.work()
	c.cluster.Restart(i)
	c.awaitReplicas()
}

// cutLeader cuts the leader of OUTCOMES off and returns how long it takes until turns
// that were acknowledged after it are answered, in every partition.
func (c *crew) cutLeader() time.Duration {
	c.t.Helper()
	c.work()
	i := c.leader()
	began := time.Now()
	c.cluster.Cut(i)
	border := c.agents.newest()
	c.until("outcomes of later turns in every partition", func() bool { return c.ears.partitionsAfter(border) == crewPartitions })
	took := time.Since(began)
	c.cluster.Heal(i)
	c.awaitReplicas()
	return took
}

// newest is the sequence of the last turn that was acknowledged.
func (f *fleet) newest() (seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.acks {
		seq = max(seq, a.seq)
	}
	return seq
}

// partitionsAfter counts the partitions of which outcomes of later events were received.
func (e *ears) partitionsAfter(seq uint64) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := map[int]bool{}
	for i := len(e.heard) - 1; i >= 0 && len(found) < crewPartitions; i-- {
		var body struct {
			Cause events.Cause `json:"caused_by"`
		}
		_, at, err := events.ParsePublished(e.heard[i].Subject)
		if err == nil {
			err = events.Unmarshal(e.heard[i].Data, &body)
		}
		if err == nil && body.Cause.Seq > seq {
			found[events.PartitionOf(at, crewPartitions)] = true
		}
		if len(e.heard)-i > 5000 {
			break
		}
	}
	return len(found)
}

// awaitReplicas waits until every node has all of every stream: one more lost would
// otherwise leave no majority.
func (c *crew) awaitReplicas() {
	c.t.Helper()
	missing := ""
	defer func() {
		if c.t.Failed() {
			c.t.Log(missing)
		}
	}()
	c.until("replicas", func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		for _, name := range []string{topology.LogStream, topology.OutcomesStream, "KV_" + topology.LeasesBucket, "KV_" + topology.MembersBucket} {
			s, err := c.js.Stream(ctx, name)
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
