package linear

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

// Cost is what one run took.
type Cost struct {
	CPU   time.Duration
	Bytes uint64 // allocated
}

// Of returns the least that one of several runs cost.
func Of(runs int, run func()) Cost {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cost := Cost{math.MaxInt64, math.MaxUint64}
	for range runs {
		cost = least(cost, costOf(unix.CLOCK_THREAD_CPUTIME_ID, run))
	}
	return cost
}

// OfProcess returns what a run cost that has other goroutines work for it.
func OfProcess(run func()) Cost { return costOf(unix.CLOCK_PROCESS_CPUTIME_ID, run) }

func costOf(clock int32, run func()) Cost {
	allocated, began := allocated(), timeOf(clock)
	run()
	return Cost{timeOf(clock) - began, allocatedSince(allocated)}
}

// allocated is how many bytes were allocated since the process began.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func allocatedSince(before uint64) uint64 { return allocated() - before }

// timeOf is the CPU time of the calling thread, or of the process.
func timeOf(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// Floors of what an entry costs: below them a cost is that of calls, and of buffers that a pool kept or
// dropped.
const (
	leastCPU   = time.Microsecond
	leastBytes = 2 << 10
)

// Ratio is what an entry costs in a large input, by that in a small one.
type Ratio struct{ CPU, Bytes float64 }

// Worst is the greater of the two.
func (r Ratio) Worst() float64 { return max(r.CPU, r.Bytes) }

// Max has the greater of each.
func (r Ratio) Max(x Ratio) Ratio { return Ratio{max(r.CPU, x.CPU), max(r.Bytes, x.Bytes)} }

// tries is how often a ratio is measured that is above what it may be: other load of the machine may
// be the reason, so that each try waits longer for it to pass, up to mostPause.
const (
	tries     = 60
	pause     = 10 * time.Millisecond
	mostPause = 200 * time.Millisecond
)

// RatioOf measures the cost of two inputs: size 0 has n entries, and size 1 has 4n. A ratio above most is
// measured again, and the least costs count.
func RatioOf(n int, most float64, cost func(size int) Cost) (r Ratio) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it empties pools
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(mostMemory))
	small, large := cost(0), cost(1)
	for try := range tries {
		r = Ratio{
			float64(large.CPU) / 4 / float64(max(small.CPU, time.Duration(n)*leastCPU)),
			float64(large.Bytes) / 4 / float64(max(small.Bytes, uint64(n)*leastBytes)),
		}
		if r.Worst() <= most {
			break
		}
		time.Sleep(min(time.Duration(try)*pause, mostPause))
		if try%8 == 7 {
			runtime.GC() // memory that is used again costs no page faults
		}
		small, large = least(small, cost(0)), least(large, cost(1))
	}
	return r
}

// mostMemory is how much memory grows without the collector: what is not linear may allocate without end.
const mostMemory = 1 << 30

func least(a, b Cost) Cost { return Cost{min(a.CPU, b.CPU), min(a.Bytes, b.Bytes)} }
