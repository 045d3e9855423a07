package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// keep is what the process holds.
var keep [][]byte

// Work is slowed far above the limit only, and by nothing without a limit.
func TestRelieve(t *testing.T) {
	limit := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(limit)
	if Relieve() {
		t.Error("slowed without a limit")
	}
	for range 64 {
		keep = append(keep, make([]byte, 1<<20))
	}
	debug.SetMemoryLimit(1 << 30)
	if Relieve() {
		t.Error("slowed far below the limit")
	}
	_, bytes := held()
	debug.SetMemoryLimit(int64(bytes) / 2)
	before, _ := held()
	if !Relieve() {
		t.Error("not slowed above the limit")
	}
	if after, _ := held(); after == before {
		t.Error("the collector did not run")
	}
	runtime.KeepAlive(keep)
	keep = nil
}

// Freed memory goes back to the system while nothing happens.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 256 {
			keep = append(keep, make([]byte, 1<<20))
		}
		for i := range keep {
			keep[i][0] = 1
		}
		runtime.GC()
		_, before := held()
		keep = nil
		ctx, stop := context.WithCancel(t.Context())
		go Release(ctx)
		time.Sleep(time.Minute)
		if _, bytes := held(); bytes >= before/2 {
			t.Errorf("memory is not given back: %d of %d bytes after a minute", bytes, before)
		}
		stop()
		synctest.Wait()
	})
}
