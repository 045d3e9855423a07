package quota_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/quota"
	"compactd/internal/summarize/summarizetest"
)

// E7: the workers of a fleet share what a tenant may use, and it is not given back when they
// and the server restart.
func TestSharedByFleet(t *testing.T) {
	t.Parallel()
	limits, dir := quota.Limits{TokensPerHour: 1_000}, t.TempDir()
	f := &fake{usage: events.SummaryUsage{Input: 300, Output: 100}}
	e := brokertest.Open(t, dir, topology.Config{Partitions: 1})
	worker := func(e *brokertest.Env) model.Model { return quota.New(limits, coord.NewShares(e.JS)).Guard(f) }
	a, b := worker(e), worker(e)
	for i, m := range []model.Model{a, b, a} {
		if !ask(t, m, "tenant") {
			t.Fatalf("call %d is refused", i)
		}
	}
	if ask(t, a, "tenant") || ask(t, b, "tenant") {
		t.Error("1,200 tokens of 1,000 are used, and a worker calls a model")
	}
	if !ask(t, a, "other") || !ask(t, b, "") {
		t.Error("another tenant has nothing left")
	}
	e.NC.Close()
	e.Srv.Stop()
	e = brokertest.Open(t, dir, topology.Config{Partitions: 1})
	again := worker(e)
	if ask(t, again, "tenant") {
		t.Error("a restart gave the share back")
	}
	if !ask(t, again, "other") {
		t.Error("after a restart another tenant has nothing left")
	}
	if f.calls != 6 {
		t.Errorf("%d calls", f.calls)
	}
}

// E7: no call is lost where workers count at the same time.
func TestCountedAtOnce(t *testing.T) {
	t.Parallel()
	e := brokertest.New(t)
	store := coord.NewShares(e.JS)
	began := time.Now()
	var all sync.WaitGroup
	for range 2 {
		m := quota.New(quota.Limits{CallsPerMinute: 1_000, TokensPerHour: 100_000}, store).Guard(costly{})
		for range 8 {
			all.Go(func() {
				if !ask(t, m, "tenant") {
					t.Error("refused")
				}
			})
		}
	}
	all.Wait()
	value, _, err := store.Load(t.Context(), "tenant")
	if err != nil {
		t.Fatal(err)
	}
	var u struct {
		Tokens int64 `json:"tokens"`
	}
	if err := codec.Unmarshal(value, &u); err != nil {
		t.Fatal(err)
	}
	const used = 16 * 3 * time.Minute // 5,000 tokens each
	if until := time.Unix(0, u.Tokens); until.Before(began.Add(used)) || until.After(time.Now().Add(used)) {
		t.Errorf("%s of tokens are counted since, not %s", until.Sub(began), used)
	}
}

// costly is a model that may be called from many goroutines.
type costly struct{ model.Model }

func (costly) Complete(context.Context, model.Request) (model.Reply, error) {
	return model.Reply{Text: "t", Usage: events.SummaryUsage{Input: 5_000}}, nil
}

// away is a store that may be out of reach.
type away struct {
	quota.Store
	err error
}

func (a *away) Load(ctx context.Context, tenant string) ([]byte, uint64, error) {
	if a.err != nil {
		return nil, 0, a.err
	}
	return a.Store.Load(ctx, tenant)
}

// E7: while the store is away no model is called, and what was used meanwhile is counted
// later.
func TestStoreAway(t *testing.T) {
	store := &away{Store: summarizetest.InMemory(), err: errors.New("no response from stream")}
	f := &fake{usage: events.SummaryUsage{Input: 1_200}}
	q := quota.New(quota.Limits{CallsPerMinute: 100, TokensPerHour: 1_000}, store)
	m := q.Guard(f)
	if _, err := m.Complete(t.Context(), model.Request{Tenant: "a"}); f.calls != 0 || !errors.Is(err, store.err) {
		t.Fatalf("%d calls without a store: %v", f.calls, err)
	}
	if ask(t, m, "a") {
		t.Fatal("it is not refused as a share that is used up")
	}
	store.err = nil
	lost := &losing{fake: f, store: store}
	if !ask(t, q.Guard(lost), "a") {
		t.Fatal("refused")
	}
	store.err = nil
	if ask(t, m, "a") || f.calls != 1 {
		t.Errorf("%d calls: what was used while the store was away is not counted", f.calls)
	}
	if !ask(t, m, "b") {
		t.Error("another tenant has nothing left")
	}
}

// losing loses the store during a call.
type losing struct {
	*fake
	store *away
}

func (l *losing) Complete(ctx context.Context, r model.Request) (model.Reply, error) {
	l.store.err = errors.New("timeout")
	return l.fake.Complete(ctx, r)
}

// BenchmarkShared admits a call by the bucket of a server in this process: the cost of a limit of all workers, beside
// that of one in memory, BenchmarkPlace in package limit.
func BenchmarkShared(b *testing.B) {
	srv, err := embedded.Start(embedded.Config{Dir: b.TempDir(), Listen: "-1"})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Stop()
	nc, err := connect.Open(b.Context(), connect.Options{InProcess: srv})
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = topology.Ensure(b.Context(), js, topology.Config{Partitions: 1, CreateBytes: brokertest.CreateBytes})
	}
	if err != nil {
		b.Fatal(err)
	}
	m := quota.New(quota.Limits{CallsPerMinute: 1 << 30}, coord.NewShares(js)).Guard(costly{})
	for b.Loop() {
		if _, err := m.Complete(b.Context(), model.Request{Tenant: "tenant"}); err != nil {
			b.Fatal(err)
		}
	}
}
