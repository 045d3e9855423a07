package limit

import (
	"testing"
	"testing/synctest"
	"time"
)

// computes has a tenant compute for a time on few bytes, and returns the class that it computed in.
func computes(t *testing.T, l *Limiter, tenant string, d time.Duration) Class {
	t.Helper()
	o := l.Begin(Account{Tenant: tenant})
	defer o.End()
	if err := o.ComputeOver(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	time.Sleep(d)
	return o.class
}

// A tenant that computes much in small requests beside another waits its turn for a processor, until it did
// nothing for a while. Alone it has what there is.
func TestMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{})
		l.moments.processors = 2
		for range 1_000 {
			if computes(t, l, "alone", 10*time.Millisecond) != Quick {
				t.Fatal("a tenant that is alone waits its turn")
			}
		}
		time.Sleep(2 * together)
		turns, quick := 0, 0
		for range 500 {
			if computes(t, l, "good", time.Millisecond) != Quick {
				t.Fatal("a tenant that computes little waits its turn")
			}
			if time.Sleep(10 * time.Millisecond); computes(t, l, "hostile", 10*time.Millisecond) == Processor {
				turns++
			} else {
				quick++
			}
		}
		if turns == 0 || quick == 0 { // its part of the processors stays its own
			t.Errorf("of a hostile tenant's requests %d waited their turn, %d not", turns, quick)
		}
		for range 1_000 { // of a decision that took long
			l.Spend("hostile", time.Second)
		}
		computes(t, l, "good", time.Millisecond)
		if computes(t, l, "hostile", time.Millisecond) != Processor {
			t.Error("decisions do not count")
		}
		if time.Sleep(3 * time.Second); computes(t, l, "good", 0) != Quick || computes(t, l, "hostile", time.Millisecond) != Quick {
			t.Error("a tenant that did nothing for a while waits its turn")
		}
	})
}

// An operation whose tenant has used its part waits behind others for a processor, and takes it in slices.
func TestMomentsYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{})
		l.moments.processors = 2
		computes(t, l, "good", 0)
		o := l.Begin(Account{Tenant: "hostile"})
		defer o.End()
		if err := o.ComputeOver(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		for range 1_000 {
			computes(t, l, "good", 0)
			time.Sleep(slice)
			if err := o.Yield(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if o.class != Processor {
			t.Error("a long operation on few bytes computes beside all others")
		}
	})
}

// Where processors are short all tenants take long: only the one that uses the most waits its turn.
func TestMomentsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{})
		l.moments.processors = 2
		for range 300 {
			l.Spend("hostile", 10*time.Millisecond)
			l.Spend("good", 4*time.Millisecond)
			time.Sleep(10 * time.Millisecond)
		}
		computes(t, l, "good", 0)
		if computes(t, l, "hostile", 0) != Processor {
			t.Error("the tenant that uses the most does not wait")
		}
		if computes(t, l, "good", 0) != Quick {
			t.Error("a tenant that uses less waits too")
		}
	})
}
