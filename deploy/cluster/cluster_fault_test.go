//go:build faults

package cluster_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/freeport"
)

// The three nodes of the example form a cluster over TLS, hold the streams three times,
// and go on without one of them; what a tenant may do is the same on every node.
func TestFaultThreeNodes(t *testing.T) {
	f := newDirectory(t)
	nodes, urls := f.cluster()
	w := startWorker(t, strings.Join(urls, ","), 3)
	for i, u := range urls {
		a := newAgent(t, u, "acme")
		a.converse(fmt.Sprintf("s%d", i))
		a.wantNoRefusal()
		if got := answer(t, connectAs(t, u, "globex"), "publish", "session.turn.acme.s1"); got != "refused" {
			t.Errorf("node %d: a turn of another tenant is %s", i, got)
		}
	}
	operator := newJS(t, connectAs(t, urls[0], "operator"))
	for _, stream := range []string{topology.LogStream, topology.OutcomesStream, topology.CanaryStream, "KV_" + topology.LeasesBucket, "KV_" + topology.MembersBucket} {
		s, err := operator.Stream(t.Context(), stream)
		if err != nil || s.CachedInfo().Config.Replicas != 3 || len(s.CachedInfo().Cluster.Replicas) != 2 {
			t.Errorf("%s is not held three times: %v", stream, err)
		}
	}
	w.awaitPublished()
	w.wantNoRefusal()

	nodes[2].Shutdown()
	nodes[2].WaitForShutdown()
	began := time.Now()
	a := newAgent(t, urls[0], "acme")
	await(t, "turns to be stored by two nodes", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.js.Publish(ctx, "session.turn.acme.late", []byte(turn(1)))
		return err == nil
	})
	t.Logf("turns were stored again after %s", time.Since(began).Round(time.Millisecond))
	w.awaitPublished()
}

// A server without the cluster's certificate is no route, and a plain one neither.
func TestFaultRoutesAreMutual(t *testing.T) {
	f := newDirectory(t)
	nodes, _ := f.cluster()
	before := nodes[0].NumRoutes()
	other := f.authority("other")
	f.certificate("intruder", other)
	for _, with := range []string{"intruder", ""} {
		o := f.options("single.conf")
		o.ServerName, o.TLSConfig = "intruder", nil
		o.Cluster = server.ClusterOpts{Name: "compactd", Host: "127.0.0.1", Port: -1}
		o.Routes = []*url.URL{{Scheme: "tls", Host: nodes[0].ClusterAddr().String()}}
		if with != "" {
			config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: "certs/intruder.pem", KeyFile: "certs/intruder-key.pem", CaFile: "certs/ca.pem", Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			o.Cluster.TLSConfig, o.Cluster.TLSTimeout = config, 2
		}
		log := &routeErrors{lines: make(chan string, 64)}
		nodes[0].SetLoggerV2(log, false, false, false)
		intruder := run(t, o)
		t.Logf("node 1: %s", <-log.lines)
		if intruder.NumRoutes() != 0 || nodes[0].NumRoutes() != before {
			t.Errorf("with the certificate %q it has %d routes, node 1 has %d, not %d", with, intruder.NumRoutes(), nodes[0].NumRoutes(), before)
		}
	}
}

// routeErrors receives what a server logs of routes that fail.
type routeErrors struct {
	server.Logger
	lines chan string
}

func (l *routeErrors) Errorf(format string, v ...any) {
	if text := fmt.Sprintf(format, v...); strings.Contains(text, "TLS") {
		select {
		case l.lines <- text:
		default:
		}
	}
}
func (*routeErrors) Noticef(string, ...any) {}
func (*routeErrors) Warnf(string, ...any)   {}
func (*routeErrors) Fatalf(string, ...any)  {}
func (*routeErrors) Debugf(string, ...any)  {}
func (*routeErrors) Tracef(string, ...any)  {}

// One tenant publishes as fast as it can, without waiting for an answer. Another is
// slowed, since the server bounds the rate of no account; nothing of it is lost or
// refused, and its outcomes come when the flood is decided: hostile actors,
// one tenant floods.
func TestFaultFlood(t *testing.T) {
	f := newDirectory(t)
	u := f.single()
	w := startWorker(t, u, 1)
	alone := acknowledgements(t, u, "alone", 100)
	stop := flood(t, u)
	beside := acknowledgements(t, u, "beside", 100)
	n := stop()
	w.awaitPublished()
	compacted := newAgent(t, u, "acme").converse("compacted")
	t.Logf("acknowledgement of a turn, p99: alone %s, beside %d turns of another tenant %s", p99(alone), n, p99(beside))
	if n < 1000 || compacted.Generation == 0 {
		t.Errorf("%d turns are no flood, or the compaction is none: generation %d", n, compacted.Generation)
	}
}

func p99(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)*99/100].Round(100 * time.Microsecond)
}

// acknowledgements times turns of the tenant acme, 5 ms apart.
func acknowledgements(t *testing.T, u, session string, n int) []time.Duration {
	t.Helper()
	a := newAgent(t, u, "acme")
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var out []time.Duration
	for i := range n {
		<-tick.C
		began := time.Now()
		a.publish(events.KindTurn, session, turn(i+1))
		out = append(out, time.Since(began))
	}
	return out
}

// flood publishes as globex until stop, which returns how much.
func flood(t *testing.T, u string) (stop func() int) {
	t.Helper()
	nc := connectAs(t, u, "globex")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		n, text := 0, []byte(`{"v":1,"turn":1,"messages":[{"role":"user","content":"again"}]}`) // small, or the log is full first
		for ctx.Err() == nil && n < 100_000 {
			if nc.PublishMsg(&nats.Msg{Subject: "session.turn.globex.s" + strconv.Itoa(n%50), Data: text}) != nil {
				break
			}
			n++
		}
		done <- n
	}()
	return func() int { cancel(); return <-done }
}

// cluster runs node-1, node-2 and node-3, with their routes on free ports of loopback.
func (f *directory) cluster() (nodes []*server.Server, urls []string) {
	f.t.Helper()
	var routes []*url.URL
	var options []*server.Options
	for i := range 3 {
		o := f.options(fmt.Sprintf("node-%d.conf", i+1))
		free, err := freeport.Address()
		if err != nil {
			f.t.Fatal(err)
		}
		at, err := net.ResolveTCPAddr("tcp", free)
		if err != nil {
			f.t.Fatal(err)
		}
		if o.Cluster.TLSConfig == nil || len(o.Routes) != 3 || o.Routes[i].Hostname() != o.ServerName {
			f.t.Errorf("node %d: routes %v, TLS %v", i+1, o.Routes, o.Cluster.TLSConfig != nil)
		}
		o.Cluster.Host, o.Cluster.Port = "127.0.0.1", at.Port
		routes = append(routes, &url.URL{Scheme: "tls", Host: at.String()})
		options = append(options, o)
	}
	started := make(chan *server.Server, 3)
	for _, o := range options {
		o.Routes = routes
		s, err := server.NewServer(o)
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		s.Start()
		started <- s
	}
	for range 3 {
		s := <-started
		if !s.ReadyForConnections(startLimit) {
			f.t.Fatalf("a node takes no connections within %s", startLimit)
		}
		nodes, urls = append(nodes, s), append(urls, s.ClientURL())
	}
	await(f.t, "a leader", func() bool {
		return slices.ContainsFunc(nodes, func(s *server.Server) bool { return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3 })
	})
	return nodes, urls
}
