package cluster

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/testkit/freeport"
)

// Nodes is how many servers a cluster has.
const Nodes = 3

// unreachable is an address where no server listens.
const unreachable = "127.0.0.1:1"

// Cluster is three servers and the links between them.
type Cluster struct {
	t       testing.TB
	nodes   [Nodes]*node
	clients [Nodes]*Link        // to each node, of its clients
	routes  [Nodes][Nodes]*Link // from each node to each other
}

// Start runs a cluster on loopback, with its data in a temporary directory, until the
// test ends. It returns when the nodes have elected a leader.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var ports [Nodes]string
	for i := range Nodes {
		ports[i] = freeAddress(t)
	}
	dir := t.TempDir()
	for i := range Nodes {
		n := &node{Name: nodeName(i), ClusterPort: portOf(t, ports[i]), Dir: filepath.Join(dir, nodeName(i))}
		for j := range Nodes {
			if i != j {
				c.routes[i][j] = NewLink(t, ports[j])
				n.Routes = append(n.Routes, c.routes[i][j].Address())
			}
		}
		client := freeAddress(t)
		n.Port = portOf(t, client)
		c.nodes[i], c.clients[i] = n, NewLink(t, client)
	}
	t.Cleanup(c.stop)
	for i := range Nodes {
		c.run(i)
	}
	c.awaitLeader()
	return c
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i) }

// URL lists the addresses of all nodes.
func (c *Cluster) URL() string {
	var out []string
	for _, l := range c.clients {
		out = append(out, "nats://"+l.Address())
	}
	return strings.Join(out, ",")
}

// Leader returns the node that leads a stream, waiting for one to be elected.
func (c *Cluster) Leader(ctx context.Context, js jetstream.JetStream, stream string) int {
	c.t.Helper()
	for {
		s, err := js.Stream(ctx, stream)
		if ctx.Err() != nil {
			c.t.Fatalf("leader of %s: %v, %v", stream, ctx.Err(), err)
		}
		if err == nil && s.CachedInfo().Cluster != nil {
			for i := range Nodes {
				if s.CachedInfo().Cluster.Leader == nodeName(i) {
					return i
				}
			}
		}
	}
}

// Cut parts a node from the others and from its clients: the others
// receive nothing of it, its clients lose their connections.
func (c *Cluster) Cut(i int) {
	c.each(i, (*Link).Cut)
	c.clients[i].Disconnect()
}

// Heal undoes Cut.
func (c *Cluster) Heal(i int) { c.each(i, (*Link).Heal) }

func (c *Cluster) each(i int, do func(*Link)) {
	do(c.clients[i])
	for j := range Nodes {
		if i != j {
			do(c.routes[i][j])
			do(c.routes[j][i])
		}
	}
}

// Kill ends a node with kill -9.
func (c *Cluster) Kill(i int) { c.nodes[i].kill() }

// Restart starts a killed node on its data.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.run(i)
}

func (c *Cluster) run(i int) {
	c.t.Helper()
	if err := c.nodes[i].start(); err != nil {
		c.t.Fatalf("start node %d: %v", i, err)
	}
}

func (c *Cluster) stop() {
	for _, n := range c.nodes {
		n.kill()
	}
}

// awaitLeader waits until the cluster makes a stream with a copy on every node: the
// server has no event for it.
func (c *Cluster) awaitLeader() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	nc, err := nats.Connect(c.URL(), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		c.t.Fatal(err)
	}
	probe := jetstream.StreamConfig{Name: "PROBE", Storage: jetstream.MemoryStorage, Replicas: Nodes}
	for {
		one, end := context.WithTimeout(ctx, time.Second)
		if _, err = js.CreateOrUpdateStream(one, probe); err == nil {
			err = js.DeleteStream(one, probe.Name)
		}
		end()
		if err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			c.t.Fatalf("no leader within %s: %v", startLimit, err)
		}
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func portOf(t testing.TB, address string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}
