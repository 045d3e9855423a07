package coord

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server/ats"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
)

// change is what a watch of the leases reports.
type change struct {
	Partition int
	Holder    Holder
}

func watchLeases(t *testing.T, l *Leases) <-chan change {
	t.Helper()
	changes := make(chan change, 100)
	stop, err := l.Watch(t.Context(), func(p int, h Holder, _ uint64) { changes <- change{p, h} }, func(err error) { t.Error(err) })
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

// One worker holds a lease at a time, until it releases it; every watch reports it.
func TestLease(t *testing.T) {
	t.Parallel()
	w := brokertest.New(t)
	l := NewLeases(w.JS, 10*time.Second)
	a, b := Holder{"a", "a-1"}, Holder{"b", "b-1"}
	first := acquire(t, l, 3, a)
	changes := watchLeases(t, l)
	reported := func(partition int, h Holder) { // one by one: what is written again at once is reported once
		t.Helper()
		if got := <-changes; got != (change{partition, h}) {
			t.Errorf("reported %+v, not that %+v has %d", got, h, partition)
		}
	}
	reported(3, a)
	if _, err := l.Acquire(t.Context(), 3, b); !errors.Is(err, ErrHeld) {
		t.Errorf("another worker got %v, not ErrHeld", err)
	}
	other := acquire(t, l, 0, b)
	reported(0, b)
	for range 3 {
		if err := l.Renew(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		reported(3, a)
	}
	for range 2 { // the second time it is gone
		if err := l.Release(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	reported(3, Holder{})
	taken := acquire(t, l, 3, b)
	reported(3, b)
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
		reported(lease.Partition, b)
	}
}

// A process that comes back as the same member has its lease at once; the process
// before it has lost it.
func TestLeaseOfSameMember(t *testing.T) {
	t.Parallel()
	w := brokertest.New(t)
	l := NewLeases(w.JS, 10*time.Second)
	before := acquire(t, l, 1, Holder{"a", "a-1"})
	acquire(t, l, 1, Holder{"a", "a-2"})
	if err := l.Renew(t.Context(), before); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("renewed with %v, not ErrLeaseLost", err)
	}
}

// A lease whose renewal was stored without an answer is released: the next owner need not wait for its end.
func TestReleaseAfterLostAnswer(t *testing.T) {
	t.Parallel()
	w := brokertest.New(t)
	l := NewLeases(w.JS, 10*time.Second)
	lease := acquire(t, l, 1, Holder{"a", "a-1"})
	before := *lease
	if err := l.Renew(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	next := acquire(t, l, 1, Holder{"b", "b-1"})
	if err := l.Release(t.Context(), lease); err != nil { // it is another's
		t.Fatal(err)
	}
	if err := l.Renew(t.Context(), next); err != nil {
		t.Error(err)
	}
}

// Of many that want a free lease at once one gets it.
func TestLeaseRace(t *testing.T) {
	t.Parallel()
	w := brokertest.New(t)
	l := NewLeases(w.JS, 10*time.Second)
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

// Members come and go; a watch reports which run.
func TestMembers(t *testing.T) {
	t.Parallel()
	w := brokertest.New(t)
	m := NewMembers(w.JS, 10*time.Second)
	if err := m.Heartbeat(t.Context(), Member{Name: "host.example"}); err == nil {
		t.Error("a name with a dot joined")
	}
	if err := m.Heartbeat(t.Context(), Member{"a", "a-1"}); err != nil {
		t.Fatal(err)
	}
	type event struct {
		who     Member
		running bool
	}
	changes := make(chan event, 100)
	stop, err := m.Watch(t.Context(), func(who Member, running bool) { changes <- event{who, running} }, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for i, step := range []struct {
		do   func() error
		want event
	}{
		{func() error { return nil }, event{Member{"a", "a-1"}, true}},
		{func() error { return m.Heartbeat(t.Context(), Member{"b", "b-1"}) }, event{Member{"b", "b-1"}, true}},
		{func() error { return m.Leave(t.Context(), "a") }, event{Member{Name: "a"}, false}},
		{func() error { return m.Heartbeat(t.Context(), Member{"b", "b-1"}) }, event{Member{"b", "b-1"}, true}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := <-changes; got != step.want {
			t.Errorf("step %d: reported %+v, not %+v", i, got, step.want)
		}
	}
	all, err := m.All(t.Context())
	if diff := cmp.Diff([]Member{{"b", "b-1"}}, all); diff != "" || err != nil {
		t.Errorf("the members are %v: %v", all, err)
	}
}

// A lease and a membership end when no worker renews them, and not before; a renewed
// one lasts for hours.
func TestLeaseEnds(t *testing.T) {
	dir := t.TempDir()
	brokertest.EmptyPools()
	defer brokertest.EmptyPools()
	ats.Register() // a clock of the server's own, which must not be one of the bubble's
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		srv, err := embedded.Start(embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Stop()
		nc, err := connect.Open(t.Context(), connect.Options{InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js := brokertest.NewJS(t, nc)
		if _, err := topology.Ensure(t.Context(), js, topology.Config{Partitions: 4, CreateBytes: brokertest.CreateBytes}); err != nil {
			t.Fatal(err)
		}
		const ttl = 10 * time.Second
		leases, members := NewLeases(js, ttl), NewMembers(js, ttl)
		leaseEnds, memberEnds := make(chan time.Time, 100), make(chan time.Time, 100)
		stopL, err := leases.Watch(t.Context(), func(_ int, h Holder, _ uint64) {
			if h == (Holder{}) {
				leaseEnds <- time.Now()
			}
		}, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		defer stopL()
		stopM, err := members.Watch(t.Context(), func(_ Member, running bool) {
			if !running {
				memberEnds <- time.Now()
			}
		}, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		defer stopM()
		lease := acquire(t, leases, 2, Holder{"a", "a-1"})
		last := time.Now()
		for range 300 { // 100 times the lease
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
			t.Errorf("no worker took it, yet it was not renewed: %v", err)
		}
		<-leaseEnds
		acquire(t, leases, 2, Holder{"b", "b-1"})
		if err := leases.Renew(t.Context(), lease); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("renewed with %v after another took it", err)
		}
	})
}
