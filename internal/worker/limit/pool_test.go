package limit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// The time of partitions counts for a quarter: beside a tenant that wants as much they have four of five
// turns.
func TestTurnsOfPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPool(1, false, true)
		served := map[Account]int{}
		var work sync.WaitGroup
		for _, of := range []Account{{"a", "1"}, Partitions} {
			for range 50 {
				work.Go(func() {
					l, err := p.take(t.Context(), of, 1)
					if err != nil {
						t.Error(err)
					}
					if served[Partitions] < 40 {
						served[of]++
					}
					time.Sleep(time.Millisecond)
					l.release()
				})
			}
		}
		work.Wait()
		if n := served[Account{"a", "1"}]; n < 8 || n > 12 {
			t.Errorf("%d turns of a tenant beside 40 of partitions, want 10", n)
		}
	})
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

// withinFloor checks that the tenant of a lease that was just taken has at most as much as it leaves free, unless this
// is its only one of a kind.
func withinFloor(t *rapid.T, p *pool, held []*lease, got *lease) {
	own, alone := int64(0), true
	for _, l := range held {
		if l.of.Tenant == got.of.Tenant && (got.large || !l.large) {
			own += l.n
			alone = alone && (l == got || l.large != got.large)
		}
	}
	if !alone && own > p.free {
		t.Fatalf("%s holds %d, and leaves %d", got.of.Tenant, own, p.free)
	}
}

// Whatever is taken, shrunk and given back: no more than there is, no tenant beyond what it leaves, nothing
// lost, none waits that could be served, and a tenant that comes finds something.
func TestPoolProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 40).Draw(t, "size")
		small := rapid.Int64Range(0, 3).Draw(t, "small")
		p := newPool(size, small, rapid.Bool().Draw(t, "floor"), false)
		p.onWait, p.onRefuse = func(time.Duration, error) {}, func() {}
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
			before := len(held)
			switch rapid.IntRange(0, 4).Draw(t, "step") {
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
					before--
				}
			case 3:
				for w, of := range waiters {
					if p.leave(of, w) {
						delete(waiters, w)
					}
					break
				}
			case 4:
				if len(held) > 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(t, "lease")
					if held[i].shrink(min(rapid.Int64Range(0, 8).Draw(t, "left"), held[i].n)); held[i].pool == nil {
						held = slices.Delete(held, i, i+1)
						before--
					}
				}
			}
			if collect(); p.floor && len(held) == before+1 { // of several each saw more free
				withinFloor(t, p, held, held[before])
			}
			var sum int64
			for _, l := range held {
				if sum += l.n; p.tenants[l.of.Tenant] != l.tenant || l.tenant.parts[l.of.Part] != l.part {
					t.Fatalf("the pool dropped the share of %v, which holds %d", l.of, l.n)
				}
			}
			if p.free != size-sum || p.free < 0 || p.waiting != len(waiters) {
				t.Fatalf("%d free, %d held of %d; %d wait of %d", p.free, sum, size, p.waiting, len(waiters))
			}
			for w, of := range waiters {
				if tenant, part := p.of(of); len(waiters) == 1 && p.fits(tenant, part, w.n) {
					t.Fatal("the only one waits that could be served")
				}
			}
			if l, ok := p.try(Account{"new", ""}, 1); ok != (p.free+l.n > 0 && (p.waiting == 0 || small > 0)) {
				t.Fatalf("a tenant that comes: %v of %d free", ok, p.free)
			} else {
				l.release()
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

// A turn costs the same, however many wait. Both measures have as many turns, so that other load on the
// machine adds the same to each.
func TestTurnsOfMany(t *testing.T) {
	const turns = 4096
	perTurn := func(n int) time.Duration {
		least := time.Hour
		for range 5 {
			var took time.Duration
			for range turns / n {
				took += serveAll(n)
			}
			least = min(least, took)
		}
		return least / turns
	}
	few, many := perTurn(64), perTurn(turns) // a search through all of them would cost 64 times as much
	if t.Logf("a turn of 4,096 costs %.1f times one of 64", float64(many)/float64(few)); many > 16*few {
		t.Errorf("%v a turn of 4,096, %v of 64", many, few)
	}
}

// serveAll returns how long a pool takes to serve n that wait, one after the other.
func serveAll(n int) time.Duration {
	p := testPool(1, false, false)
	first, _ := p.try(Account{"first", ""}, 1)
	all := make([]*waiter, n)
	for i := range all {
		all[i] = p.enqueue(Account{strconv.Itoa(i % 8), fmt.Sprintf("%04d", i)}, 1)
	}
	began := time.Now()
	first.release()
	for _, w := range all {
		<-w.ready
		w.took.release()
	}
	return time.Since(began)
}

// So many wait at most, and a tenant leaves others room among them.
func TestMostWaiting(t *testing.T) {
	p := testPool(1, false, true)
	held, _ := p.try(Account{"a", ""}, 1)
	waits := map[string]int{}
	for _, tenant := range []string{"a", "b", "c"} {
		for p.enqueue(Account{tenant, strconv.Itoa(waits[tenant])}, 1) != nil {
			waits[tenant]++
		}
	}
	if waits["a"] != mostWaiting/2 || waits["b"] != mostWaiting/4 || waits["c"] != mostWaiting/8 {
		t.Errorf("%v wait", waits)
	}
	if _, err := p.take(t.Context(), Account{"a", ""}, 1); !errors.Is(err, ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	held.release()
}

// The fast path costs the reading of a small body less than as much again: the ratio is of an operation through the
// limiter and of one without limits.
func BenchmarkSmallBody(b *testing.B) {
	l, of, body := New(Config{}), Account{"acme", "token"}, bytes.Repeat([]byte{'x'}, 4<<10)
	read := func(o *Operation) {
		r := &http.Request{Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
		if _, err := o.ReadBody(b.Context(), httptest.NewRecorder(), r, Body{Most: 1 << 20}); err != nil {
			b.Fatal(err)
		}
		o.End()
	}
	var with, without time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		read(nil)
		between := time.Now()
		read(l.Begin(of))
		without, with = without+between.Sub(began), with+time.Since(between)
	}
	b.ReportMetric(float64(with)/float64(without), "ratio")
}

// BenchmarkPlace admits an operation by a place and memory of the process.
func BenchmarkPlace(b *testing.B) {
	l := New(Config{})
	for b.Loop() {
		o := l.Begin(Account{"acme", "token"})
		release, err := o.Hold(b.Context(), Reads)
		if err = cmp.Or(err, o.Remember(b.Context(), 1<<20)); err != nil {
			b.Fatal(err)
		}
		release()
		o.End()
	}
}
