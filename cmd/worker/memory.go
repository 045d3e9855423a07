package main

import (
	"cmp"
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memorySize is the limit of --memory, in bytes; 0 is the default.
type memorySize int64

// UnmarshalText reads a size.
func (m *memorySize) UnmarshalText(text []byte) error {
	if len(text) == 0 { // a variable that is set to nothing is one that is not set
		return nil
	}
	n, err := size(string(text))
	*m = memorySize(n)
	return err
}

// mostDefaultMemory is the most that a worker takes as its limit where none is set.
const mostDefaultMemory = 1 << 30

// defaultMemory is half of what the control group allows, or the machine has: mapped files
// and the caches of the system need room too.
func defaultMemory() memorySize {
	n, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil {
		return mostDefaultMemory
	}
	return memorySize(min(n/2, mostDefaultMemory))
}

// limitMemory sets the limit of the process, unless GOMEMLIMIT has, and returns what may be
// taken of it by what grows with the work: half, since the server and the collector of garbage
// need room too. 0 is the worker's default.
func (f *flags) limitMemory() int64 {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(cmp.Or(f.Memory, defaultMemory())))
	}
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 { // GOMEMLIMIT=off
		return 0
	}
	return limit / 2
}

// Memory is given back to the system when the collector of garbage did not run by itself for
// leastRelease, and again after each time that freed some; else after twice as long, up to
// the two minutes after which the runtime collects too.
const (
	leastRelease = 10 * time.Second
	mostRelease  = 2 * time.Minute
)

// releaseMemory gives back what the process does not need any more, until ctx ends. The
// runtime would keep most of it.
func releaseMemory(ctx context.Context) {
	for ran, wait := uint64(0), leastRelease; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		cycles, before := heldMemory()
		if ran != cycles {
			ran, wait = cycles, leastRelease
			continue
		}
		debug.FreeOSMemory()
		var after uint64
		if ran, after = heldMemory(); after < before-before/16 {
			wait = leastRelease
		} else {
			wait = min(2*wait, mostRelease)
		}
	}
}

// heldMemory is how often the collector has run, and how many bytes the runtime has of the
// system.
func heldMemory() (cycles, bytes uint64) {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64() - s[2].Value.Uint64()
}
