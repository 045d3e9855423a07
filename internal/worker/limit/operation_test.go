package limit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Operations compute in slices, a few at a time; one that waits for long holds no processor.
func TestCompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{})
		most := int64(max(runtime.GOMAXPROCS(0)-1, 1))
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				o := l.Begin(Account{"hostile", "token"})
				defer o.End()
				for range 100 {
					if err := o.Compute(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(slice)
					if held := l.Held(Processor); held > most {
						t.Errorf("%d compute at once", held)
					}
					if err := o.Yield(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(10 * slice)
		began, o := time.Now(), l.Begin(Account{"other", "token"})
		if err := o.Compute(t.Context()); err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited > 2*slice {
			t.Errorf("another tenant waits %s for its first slice", waited)
		}
		if err := o.Idle(t.Context(), func() error {
			time.Sleep(time.Millisecond)
			if held := l.Held(Processor); held != most { // of the others
				t.Errorf("%d compute while one waits", held)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		o.End()
		work.Wait()
		if held := l.Held(Processor); held != 0 {
			t.Errorf("%d processors are held at the end", held)
		}
	})
}

// Work on few bytes has places of its own, a few at a time, and leaves them for longer work.
func TestComputeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{})
		most := int64(2 * runtime.GOMAXPROCS(0))
		var work sync.WaitGroup
		for range 100 {
			work.Go(func() {
				o := l.Begin(Account{"hostile", "token"})
				defer o.End()
				if err := o.ComputeOver(t.Context(), 100); err != nil {
					t.Error(err)
				}
				time.Sleep(slice)
				if held := l.Held(Quick); held > most {
					t.Errorf("%d compute at once", held)
				}
			})
		}
		time.Sleep(slice / 2)
		began, o := time.Now(), l.Begin(Account{"other", "token"})
		if err := o.ComputeOver(t.Context(), 100); err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited > slice {
			t.Errorf("another tenant waits %s", waited)
		}
		work.Wait()
		if err := o.ComputeOver(t.Context(), Large+1); err != nil || l.Held(Quick) != 0 || l.Held(Processor) != 1 {
			t.Errorf("%v, %d and %d places are held for longer work", err, l.Held(Quick), l.Held(Processor))
		}
		if err := o.Remember(t.Context(), Large+1); err != nil || l.Held(Processor) != 0 {
			t.Errorf("%v, and a processor is held behind memory", err)
		}
		if o.Free(); l.Held(Memory) != 0 {
			t.Errorf("%d bytes are held", l.Held(Memory))
		}
		o.End()
	})
}

// Many small messages weigh as much as a long text.
func TestWeight(t *testing.T) {
	if many, long := Weight([]byte(strings.Repeat(`{"role":"user","content":"a"},`, 1_100))), Weight([]byte(strings.Repeat("a", 60_000))); many <= Large || long > Large {
		t.Errorf("1,100 messages weigh %d, and 60,000 characters %d", many, long)
	}
}

// Room that an operation did not get may be given back.
func TestReleaseOfNothing(t *testing.T) {
	l := New(Config{})
	for i := range maxReads {
		release, ok := l.TryHold(Reads, Account{Tenant: fmt.Sprint(i)}, 1)
		if !ok {
			t.Fatal("there is no place")
		}
		defer release()
	}
	ended, end := context.WithCancel(t.Context())
	end()
	release, err := l.Begin(Account{Tenant: "acme"}).Hold(ended, Reads)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	release()
	if held := l.Held(Reads); held != maxReads {
		t.Errorf("%d of %d places are held", held, maxReads)
	}
}
