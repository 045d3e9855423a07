package clustertest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Nodes is how many servers a cluster has.
const Nodes = 3

// dead is an address where nobody listens.
const dead = "127.0.0.1:1"

// startLimit bounds how long servers take to start and to find each other.
const startLimit = time.Minute

// Cluster is three servers and the links between them.
type Cluster struct {
	t       testing.TB
	options [Nodes]*server.Options
	servers [Nodes]*server.Server // nil while killed
	clients [Nodes]*link          // to each node, of its clients
	routes  [Nodes][Nodes]*link   // from each node to each other
}

// Start runs a cluster on loopback, with its data in a temporary folder, until the
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
		var routes []*url.URL
		for j := range Nodes {
			if i != j {
				c.routes[i][j] = newLink(t, ports[j])
				routes = append(routes, &url.URL{Scheme: "nats", Host: c.routes[i][j].address()})
			}
		}
		client := freeAddress(t)
		c.clients[i] = newLink(t, client)
		c.options[i] = &server.Options{
			ServerName: nodeName(i), Host: "127.0.0.1", Port: portOf(t, client), NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: filepath.Join(dir, nodeName(i)), JetStreamMaxStore: 4 << 30, JetStreamMaxMemory: 64 << 20,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: portOf(t, ports[i]), Advertise: dead, NoAdvertise: true},
			Routes:  routes,
		}
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
		out = append(out, "nats://"+l.address())
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

// Cut parts a node from the others and from its clients: to the others it is
// silent, its clients lose their connections.
func (c *Cluster) Cut(i int) {
	c.each(i, (*link).cut)
	c.clients[i].disconnect()
}

// Heal undoes Cut.
func (c *Cluster) Heal(i int) { c.each(i, (*link).heal) }

func (c *Cluster) each(i int, do func(*link)) {
	do(c.clients[i])
	for j := range Nodes {
		if i != j {
			do(c.routes[i][j])
			do(c.routes[j][i])
		}
	}
}

// Kill ends a node that can no longer say so to anybody.
func (c *Cluster) Kill(i int) {
	c.Cut(i)
	c.end(i)
}

// Restart starts a killed node on its data, with all its links.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.Heal(i)
	c.run(i)
}

func (c *Cluster) run(i int) {
	c.t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		c.t.Fatalf("start node %d: %v", i, err)
	}
	s.Start()
	c.servers[i] = s
	if !s.ReadyForConnections(startLimit) {
		c.t.Fatalf("node %d takes no connections within %s", i, startLimit)
	}
}

func (c *Cluster) end(i int) {
	if s := c.servers[i]; s != nil {
		s.Shutdown()
		s.WaitForShutdown()
		c.servers[i] = nil
	}
}

func (c *Cluster) stop() {
	for i := range Nodes {
		c.end(i)
	}
}

// awaitLeader waits until all nodes are known and one of them leads: the server has
// no event for it.
func (c *Cluster) awaitLeader() {
	c.t.Helper()
	deadline, tick := time.After(startLimit), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		for _, s := range c.servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == Nodes {
				return
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("no leader within %s", startLimit)
		}
	}
}

// freeAddress is one that nobody listens at just now.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func portOf(t testing.TB, address string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port
}
