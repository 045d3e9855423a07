package broker

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"compactd/internal/broker/embedded"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go/jetstream"
)

// change is what a watch of the leases tells.
type change struct {
	Partition int
	Holder    Holder
}

func watchLeases(t *testing.T, l *Leases) <-chan change {
	t.Helper()
	changes := make(chan change, 100)
	stop, err := l.Watch(t.Context(), func(p int, h Holder) { changes <- change{p, h} }, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return changes
}

func acquire(t *testing.T, l *Leases, partition int, h Holder) *Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), partition, h)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// One worker holds a lease at a time, until it lets go of it; everybody hears of it.
func TestLease(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	l := NewLeases(w.js, 10*time.Second)
	a, b := Holder{"a", "a-1"}, Holder{"b", "b-1"}
	first := acquire(t, l, 3, a)
	changes := watchLeases(t, l)
	told := func(partition int, h Holder) { // one by one: what is written again at once is told once
		t.Helper()
		if got := <-changes; got != (change{partition, h}) {
			t.Errorf("told %+v, not that %+v has %d", got, h, partition)
		}
	}
	told(3, a)
	if _, err := l.Acquire(t.Context(), 3, b); !errors.Is(err, ErrHeld) {
		t.Errorf("another worker got %v, not ErrHeld", err)
	}
	other := acquire(t, l, 0, b)
	told(0, b)
	for range 3 {
		if err := l.Renew(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		told(3, a)
	}
	for range 2 { // the second time it is gone
		if err := l.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	told(3, Holder{})
	taken := acquire(t, l, 3, b)
	told(3, b)
	if err := l.Renew(t.Context(), first); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the former holder renewed with %v, not ErrLeaseLost", err)
	}
	if err := l.Release(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	for _, lease := range []*Lease{taken, other} {
		if err := l.Renew(t.Context(), lease); err != nil {
			t.Errorf("lease %d: %v", lease.Partition, err)
		}
		told(lease.Partition, b)
	}
}

// A process that comes back as the same member has its lease at once; the process
// before it has lost it.
func TestLeaseOfSameMember(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	l := NewLeases(w.js, 10*time.Second)
	before := acquire(t, l, 1, Holder{"a", "a-1"})
	acquire(t, l, 1, Holder{"a", "a-2"})
	if err := l.Renew(t.Context(), before); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("renewed with %v, not ErrLeaseLost", err)
	}
}

// Of many that want a free lease at once one gets it.
func TestLeaseRace(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	l := NewLeases(w.js, 10*time.Second)
	for round := range 20 {
		got := make(chan error, 8)
		for i := range cap(got) {
			h := Holder{string(rune('a' + i)), "x"}
			go func() { _, err := l.Acquire(t.Context(), round, h); got <- err }()
		}
		held := 0
		for range cap(got) {
			switch err := <-got; {
			case err == nil:
				held++
			case !errors.Is(err, ErrHeld):
				t.Error(err)
			}
		}
		if held != 1 {
			t.Errorf("%d workers hold lease %d", held, round)
		}
	}
}

// Members come and go; a watch tells who lives.
func TestMembers(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	m := NewMembers(w.js, 10*time.Second)
	if err := m.Heartbeat(t.Context(), Member{Name: "host.example"}); err == nil {
		t.Error("a name with a dot joined")
	}
	if err := m.Heartbeat(t.Context(), Member{"a", "a-1"}); err != nil {
		t.Fatal(err)
	}
	type told struct {
		who   Member
		lives bool
	}
	changes := make(chan told, 100)
	stop, err := m.Watch(t.Context(), func(who Member, lives bool) { changes <- told{who, lives} }, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for i, step := range []struct {
		do   func() error
		want told
	}{
		{func() error { return nil }, told{Member{"a", "a-1"}, true}},
		{func() error { return m.Heartbeat(t.Context(), Member{"b", "b-1"}) }, told{Member{"b", "b-1"}, true}},
		{func() error { return m.Leave(t.Context(), "a") }, told{Member{Name: "a"}, false}},
		{func() error { return m.Heartbeat(t.Context(), Member{"b", "b-1"}) }, told{Member{"b", "b-1"}, true}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := <-changes; got != step.want {
			t.Errorf("step %d: told %+v, not %+v", i, got, step.want)
		}
	}
}

// A lease and a membership end when nobody renews them, and not before; a renewed
// one lives for hours.
func TestLeaseEnds(t *testing.T) {
	dir := t.TempDir()
	emptyPools()
	defer emptyPools()
	ats.Register() // a clock of the server's own, which must not be one of the bubble's
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		srv, err := embedded.Start(embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Stop()
		nc, err := Connect(t.Context(), Options{InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js := newJS(t, nc)
		if _, err := Ensure(t.Context(), js, Topology{Partitions: 4, CreateBytes: testBytes}); err != nil {
			t.Fatal(err)
		}
		const ttl = 10 * time.Second
		leases, members := NewLeases(js, ttl), NewMembers(js, ttl)
		leaseEnds, memberEnds := make(chan time.Time, 100), make(chan time.Time, 100)
		stopL, err := leases.Watch(t.Context(), func(_ int, h Holder) {
			if h == (Holder{}) {
				leaseEnds <- time.Now()
			}
		}, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		defer stopL()
		stopM, err := members.Watch(t.Context(), func(_ Member, lives bool) {
			if !lives {
				memberEnds <- time.Now()
			}
		}, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		defer stopM()
		lease := acquire(t, leases, 2, Holder{"a", "a-1"})
		last := time.Now()
		for range 2000 { // almost two hours
			if err := errors.Join(leases.Renew(t.Context(), lease), members.Heartbeat(t.Context(), Member{"a", "a-1"})); err != nil {
				t.Fatal(err)
			}
			last = time.Now()
			time.Sleep(ttl / 3)
		}
		if len(leaseEnds)+len(memberEnds) > 0 {
			t.Error("what was renewed has ended")
		}
		for name, ends := range map[string]<-chan time.Time{"lease": leaseEnds, "member": memberEnds} {
			if d := (<-ends).Sub(last); d < ttl || d > ttl+2500*time.Millisecond {
				t.Errorf("a %s of %s ended %s after it was renewed last", name, ttl, d)
			}
		}
		if err := leases.Renew(t.Context(), lease); err != nil {
			t.Errorf("nobody took it, yet it was not renewed: %v", err)
		}
		<-leaseEnds
		acquire(t, leases, 2, Holder{"b", "b-1"})
		if err := leases.Renew(t.Context(), lease); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("renewed with %v after another took it", err)
		}
	})
}

// emptyPools empties the pools of nats.go: a timer of one bubble is fatal outside of
// it. The first collection moves what is in a pool, the second drops it.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

// A bucket whose keys would not end, or that is none of ours, ends the start.
func TestEnsureRefusesBuckets(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	nc, err := Connect(t.Context(), Options{InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js := newJS(t, nc)
	for _, name := range []string{LeasesBucket, MembersBucket} {
		if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: name}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = Ensure(t.Context(), js, Topology{Partitions: 1, CreateBytes: testBytes})
	bad, ok := errors.AsType[*TopologyError](err)
	if !ok {
		t.Fatalf("ensured with %v", err)
	}
	want := []Mismatch{
		{"KV_LEASES", "message TTL", "false", "true"},
		{"KV_LEASES", "delete markers", "false", "true"},
		{"KV_MEMBERS", "message TTL", "false", "true"},
		{"KV_MEMBERS", "delete markers", "false", "true"},
	}
	if diff := cmp.Diff(want, bad.Mismatches); diff != "" {
		t.Errorf("mismatches (-want +got):\n%s", diff)
	}
}
