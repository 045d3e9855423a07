package main

import (
	"cmp"
	"math"
	"os"
	"runtime/debug"

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
