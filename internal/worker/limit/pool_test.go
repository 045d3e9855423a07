package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func testPool(size int64, floor, timed bool) *pool {
	p := newPool(size, 0, floor, timed)
	p.onWait, p.onRefuse = func(time.Duration, error) {}, func() {}
	return p
}

// takeAll takes places one by one until there is none at once.
func takeAll(p *pool, of Account) (held []*lease) {
	for {
		l, ok := p.try(of, 1)
		if !ok {
			return held
		}
		held = append(held, &l)
	}
}

// However much tenants take, a share is free for the next one, and within a tenant for the next
// part.
func TestFloors(t *testing.T) {
	p := testPool(64, true, true)
	for i, want := range []int{24, 6, 12, 3} { // three quarters of half, then of what that leaves
		of := Account{[]string{"a", "a", "b", "b"}[i], strconv.Itoa(i)}
		if got := len(takeAll(p, of)); got != want {
			t.Errorf("%v: %d places, want %d", of, got, want)
		}
	}
	for _, tenant := range []string{"c", "d", "e"} {
		if got := len(takeAll(p, Account{tenant, ""})); got == 0 {
			t.Errorf("nothing is left for %s", tenant)
		}
	}
}

// A tenant that comes waits for one turn of another one, however many of that one wait: the turn is
// of the one that used the least.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPool(1, false, true)
		var order []string
		var work sync.WaitGroup
		run := func(of Account, d time.Duration) {
			work.Go(func() {
				l, err := p.take(t.Context(), of, 1)
				if err != nil {
					t.Error(err)
				}
				order = append(order, of.Tenant+of.Part)
				time.Sleep(d)
				l.release()
			})
		}
		for range 4 {
			run(Account{"a", "1"}, 10*time.Millisecond)
		}
		synctest.Wait()
		run(Account{"a", "2"}, 10*time.Millisecond)
		run(Account{"b", "1"}, time.Millisecond)
		synctest.Wait()
		run(Account{"b", "1"}, time.Millisecond)
		work.Wait()
		if want := []string{"a1", "b1", "b1", "a2", "a1", "a1", "a1"}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
	})
}

// An operation that waits gets the cause of its context, and leaves its turn to others.
func TestWaitEnds(t *testing.T) {
	p := testPool(1, false, true)
	held, _ := p.try(Account{"a", ""}, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrBusy)
	if _, err := p.take(ctx, Account{"a", ""}, 1); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	held.release()
	held.release()
	if l, ok := p.try(Account{"b", ""}, 1); !ok || p.free != 0 || p.waiting != 0 {
		t.Errorf("%v, %d free, %d wait", ok, p.free, p.waiting)
	} else {
		l.release()
	}
}

// A large lease is not overtaken for ever by smaller ones of other tenants.
func TestLargeLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPool(16, true, false)
		first, _ := p.try(Account{"a", ""}, 6)
		second, _ := p.try(Account{"b", ""}, 4)
		got := make(chan string, 2)
		go func() { l, _ := p.take(t.Context(), Account{"c", ""}, 8); got <- "large"; l.release() }()
		synctest.Wait()
		go func() { l, _ := p.take(t.Context(), Account{"d", ""}, 5); got <- "later"; l.release() }()
		synctest.Wait()
		first.release()
		if name := <-got; name != "large" {
			t.Errorf("%s is first", name)
		}
		<-got
		second.release()
	})
}

// Whatever is taken and given back: no more than there is, no tenant beyond what it leaves, nothing
// lost, and none waits that could be served.
func TestPoolProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 40).Draw(t, "size")
		p := testPool(size, rapid.Bool().Draw(t, "floor"), false)
		var held []*lease
		waiters := map[*waiter]Account{}
		collect := func() {
			for w := range waiters {
				select {
				case <-w.ready:
					held = append(held, &w.took)
					delete(waiters, w)
				default:
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			of := Account{fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "tenant")), fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "part"))}
			n := rapid.Int64Range(1, 8).Draw(t, "n")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				if l, ok := p.try(of, n); ok {
					held = append(held, &l)
				}
			case 1:
				waiters[p.enqueue(of, min(n, p.most()))] = of
			case 2:
				if len(held) > 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(t, "lease")
					held[i].release()
					held = slices.Delete(held, i, i+1)
				}
			case 3:
				for w, of := range waiters {
					if p.leave(of, w) {
						delete(waiters, w)
					}
					break
				}
			}
			collect()
			var sum int64
			for _, l := range held {
				sum += l.n
			}
			if p.free != size-sum || p.free < 0 {
				t.Fatalf("%d free, %d held of %d", p.free, sum, size)
			}
			if _, tenant, _ := p.next(); tenant != nil {
				t.Fatal("one waits that could be served")
			}
		}
		for len(held)+len(waiters) > 0 {
			if len(held) == 0 {
				t.Fatalf("%d wait for nothing", len(waiters))
			}
			held[0].release()
			held = held[1:]
			collect()
		}
		if p.free != size || p.waiting != 0 {
			t.Fatalf("%d of %d free, %d wait", p.free, size, p.waiting)
		}
	})
}

// A place costs a small operation less than a microsecond.
func BenchmarkTake(b *testing.B) {
	l := New(Config{})
	of := Account{"acme", "token"}
	b.ReportAllocs()
	for b.Loop() {
		o := l.Begin(of)
		if !o.TryRemember(4 << 10) {
			b.Fatal("busy")
		}
		o.End()
	}
}
