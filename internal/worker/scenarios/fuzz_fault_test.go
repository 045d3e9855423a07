//go:build faults

package scenarios_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/topology"
	"compactd/internal/events/partitions"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// For a minute, and at least 20,000 messages, random messages are stored beside a good session,
// whose next turn is decided each time. A second worker without files reaches the same
// position (P20).
func TestFaultFuzzedMessages(t *testing.T) {
	t.Parallel()
	const least = 20_000
	s := newFuzzTarget(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var slowest time.Duration
	for began := time.Now(); s.stored < least || time.Since(began) < time.Minute; {
		block, body := randomMessage(r, string(workertest.Turn(1+r.IntN(3))))
		s.publishHostile(block, body)
		sent := time.Now()
		s.wantDecided(t, fmt.Sprintf("message %d of seed %d, %.200q with %d bytes", s.stored, seed, block, len(body)))
		slowest = max(slowest, time.Since(sent))
	}
	state, err := topology.State(t.Context(), s.js, topology.LogStream)
	if err == nil {
		err = commit.AwaitCursor(t.Context(), s.js, partitions.New(1), state.Last)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	rejected, twice := s.rejected()
	if rejected == 0 || twice > 0 {
		t.Errorf("%d events are rejected, %d of them twice", rejected, twice)
	}
	again := s.serveAgain()
	if state.Last != again {
		t.Errorf("a worker without files is at %d of %d", again, state.Last)
	}
	figures.Print(t, "P20", "messages", s.stored, "refused", s.refused, "rejected", rejected, "rejected_twice", twice,
		"good_turns", s.turns, "stalls", 0, "slowest_ms", slowest.Milliseconds())
}

// serveAgain opens the partition with a worker without files, and returns its position.
func (s *fuzzTarget) serveAgain() uint64 {
	s.tb.Helper()
	next := s.worker(s.tb, "next")
	m, err := commit.LastMarker(context.Background(), s.conn, 0)
	if err != nil {
		s.tb.Fatal(err)
	}
	if err := next(); err != nil {
		s.tb.Fatal(err)
	}
	return m.Cursor
}
