package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Streams is a cluster with the streams of compactd on its nodes.
type Streams struct {
	*Cluster
	JS jetstream.JetStream

	t *testing.T

	mu    sync.Mutex
	tries map[string]int // by why they failed
}

// StartStreams starts a cluster, and creates the streams with a replica on each node.
func StartStreams(t *testing.T) *Streams {
	t.Helper()
	w := &Streams{Cluster: Start(t), t: t, tries: map[string]int{}}
	w.JS = brokertest.NewJS(t, w.Connect())
	if _, err := topology.Ensure(t.Context(), w.JS, topology.Config{Partitions: 4, Replicas: Nodes, CreateBytes: brokertest.CreateBytes}); err != nil {
		t.Fatal(err)
	}
	return w
}

// Connect opens a connection that ends with the test.
func (w *Streams) Connect() *nats.Conn {
	w.t.Helper()
	nc, err := connect.Open(w.t.Context(), connect.Options{URL: w.URL()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

// Claim claims partition 1 for an owner. It counts failed attempts by their cause.
func (w *Streams) Claim(owner string) commit.Claim {
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

// TakeOver takes partition 1 over.
func (w *Streams) TakeOver(owner string) *commit.Committer {
	w.t.Helper()
	c, _, err := commit.TakeOver(w.t.Context(), w.Connect(), w.Claim(owner))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// Retries are the failed attempts, by why they failed.
func (w *Streams) Retries() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimPrefix(fmt.Sprint(w.tries), "map")
}

// AwaitReplicas waits until all nodes have all of OUTCOMES: one more lost would
// otherwise leave no majority.
func (w *Streams) AwaitReplicas() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		one, end := context.WithTimeout(ctx, time.Second) // without a leader there is no answer
		s, err := w.JS.Stream(one, topology.OutcomesStream)
		end()
		if err == nil && s.CachedInfo().Cluster != nil && jsapi.HasQuorum(s.CachedInfo().Cluster) {
			current := func(p *jetstream.PeerInfo) bool { return p.Current && !p.Offline }
			if r := s.CachedInfo().Cluster.Replicas; len(r) == Nodes-1 && current(r[0]) && current(r[1]) {
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

// Stored lists the outcomes of partition 1 in their order.
func (w *Streams) Stored() []string {
	w.t.Helper()
	out, err := w.Read()
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// Read reads the outcomes of partition 1 in their order.
func (w *Streams) Read() (out []string, err error) {
	err = stream.ReadStream(w.t.Context(), w.JS, topology.OutcomesStream, events.OutcomeFilter(1), 0, 0, func(m jetstream.Msg, _ uint64) error {
		if len(m.Data()) > 0 {
			out = append(out, string(m.Data()))
		}
		return nil
	})
	return out, err
}

// Message is an outcome of one session.
func Message(text string) commit.Message {
	return commit.Message{Subject: events.Outcome(1, events.KindBudget, events.Address{Tenant: "t", Session: "s"}), Data: []byte(text)}
}
