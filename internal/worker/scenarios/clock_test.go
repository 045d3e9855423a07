package scenarios_test

import (
	"sync/atomic"
	"testing"
	"time"
	_ "unsafe" // for the clock of the server

	_ "github.com/nats-io/nats-server/v2/server/ats"
)

// The server has a clock of its own for what expires. The goroutine that updates it runs outside
// of any synctest bubble, so it would show the real time.
var (
	//go:linkname serverClock github.com/nats-io/nats-server/v2/server/ats.utime
	serverClock atomic.Int64
	//go:linkname serverClockUsers github.com/nats-io/nats-server/v2/server/ats.refs
	serverClockUsers atomic.Int64
)

// holdClock prevents that goroutine from starting until the test ends.
func holdClock(t *testing.T) {
	if n := serverClockUsers.Add(1); n != 1 {
		t.Fatalf("%d servers run beside the test", n-1)
	}
	t.Cleanup(func() { serverClockUsers.Add(-1) })
}

// keepClock sets the clock to the time of the bubble, until stop is called.
func keepClock() (stop func()) {
	set := func() { serverClock.Store(time.Now().UnixNano()) }
	set()
	tick, done := time.NewTicker(10*time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-tick.C:
				set()
			case <-done:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(done) }
}
