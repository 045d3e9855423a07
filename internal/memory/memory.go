package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// held is how often the collector has run, and how many bytes the runtime has of the system.
func held() (cycles, bytes uint64) {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64() - s[2].Value.Uint64()
}

// objects is how many bytes are in use, or were when the collector last looked.
func objects() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// reliefStep is the growth since the last forced collection at which the next one is forced, in bytes.
const reliefStep = 64 << 20

// relief holds the bytes that the last forced collection left.
var relief struct {
	sync.Mutex
	left int64
}

// Relieve reports whether the process has more than half of its limit in use. Above the limit it first forces a
// collection, once in each [reliefStep]: under load, blocks that an embedded server has read would gather faster
// than they are collected.
func Relieve() bool {
	limit := debug.SetMemoryLimit(-1)
	if used := objects(); used <= limit {
		return used > limit/2
	}
	relief.Lock()
	defer relief.Unlock()
	now := objects()
	if relief.left = min(relief.left, now); now >= relief.left+reliefStep {
		runtime.GC()
		relief.left = objects()
	}
	return true
}

// Memory is given back to the system when the collector did not run by itself for
// leastRelease, and again after each time that freed some; else after twice as long, up to
// the two minutes after which the runtime collects too.
const (
	leastRelease = 10 * time.Second
	mostRelease  = 2 * time.Minute
)

// Release gives back what the process does not need any more, until ctx ends. The runtime
// would keep most of it.
func Release(ctx context.Context) {
	for ran, wait := uint64(0), leastRelease; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		cycles, before := held()
		if ran != cycles {
			ran, wait = cycles, leastRelease
			continue
		}
		debug.FreeOSMemory()
		var after uint64
		if ran, after = held(); after < before-before/16 {
			wait = leastRelease
		} else {
			wait = min(2*wait, mostRelease)
		}
	}
}
