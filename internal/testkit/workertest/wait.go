package workertest

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/worker/observe"
)

// WaitLimit is how long a test waits for what takes milliseconds on an idle machine.
const WaitLimit = time.Minute

// Next waits for the next value of a channel that a listener fills.
func Next[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(WaitLimit):
		t.Fatalf("no %s in time", what)
		panic("unreachable")
	}
}

// Until waits for a state that no event reports, such as that of files.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(WaitLimit); !ok(); Pause(t, time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// Pause lets time pass, to vary the moment of a kill or to poll. It waits for no condition.
func Pause(t testing.TB, d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// NoRetry fails a test whose worker retries a step. A missed heartbeat is no failure: a
// server on a busy machine is late with it.
func NoRetry(t *testing.T) func(observe.Retrying) {
	return func(e observe.Retrying) {
		if !errors.Is(e.Err, jetstream.ErrNoHeartbeat) {
			t.Errorf("%s: %v", e.Step, e.Err)
		}
	}
}

// EmptyPools empties the pools of nats.go: a timer of one bubble is fatal outside of it. The
// first collection moves the contents of a pool, the second drops them.
func EmptyPools() {
	runtime.GC()
	runtime.GC()
}
