package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"
)

// leastMaxBytes is the smallest bound that --max-bytes takes: a few of the largest turns.
const leastMaxBytes = 64 << 20

// maxBytes bounds SESSIONS and OUTCOMES, in bytes; 0 leaves them as they are.
type maxBytes struct{ log, outcomes int64 }

// UnmarshalText reads one size for each of the two, or two with a comma between them.
func (m *maxBytes) UnmarshalText(text []byte) error {
	if len(text) == 0 { // a variable that is set to nothing is one that is not set
		return nil
	}
	log, outcomes, two := strings.Cut(string(text), ",")
	var err error
	if m.log, err = size(log); err != nil {
		return err
	}
	if m.outcomes = m.log; two {
		m.outcomes, err = size(outcomes)
	}
	return err
}

func size(text string) (int64, error) {
	n, err := humanize.ParseBytes(strings.TrimSpace(text))
	if err != nil || n < leastMaxBytes || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size of 64MiB or more, such as 20GiB or 150GB", strings.TrimSpace(text))
	}
	return int64(n), nil
}

// leastHourly is the smallest bound that --tenant-outcomes-per-hour takes: one of the
// largest outcomes.
const leastHourly = 8 << 20

// hourlyBytes bounds what a tenant may have stored in an hour; 0 is the default,
// negative no bound.
type hourlyBytes int64

// UnmarshalText reads a size, or off.
func (h *hourlyBytes) UnmarshalText(text []byte) error {
	switch s := strings.TrimSpace(string(text)); s {
	case "": // a variable that is set to nothing is one that is not set
	case "off":
		*h = -1
	default:
		n, err := humanize.ParseBytes(s)
		if err != nil || n < leastHourly || n > math.MaxInt64 {
			return fmt.Errorf("%q is neither off nor a size of 8MiB or more, such as 1GiB", s)
		}
		*h = hourlyBytes(n)
	}
	return nil
}

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
