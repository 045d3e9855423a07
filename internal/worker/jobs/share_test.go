package jobs

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// Hostile actors: a tenant with jobs without number has its share of the slots and
// no more, so that another's job is taken at once; what it has beyond waits in its
// turn, and is bounded.
func TestShares(t *testing.T) {
	s := newShares(2)
	for n := range 2 {
		if !s.take("hostile") {
			t.Fatalf("no slot %d", n)
		}
	}
	if s.take("hostile") {
		t.Fatal("more slots than its share")
	}
	var all []jetstream.Msg
	for range maxHeld {
		m := &message{}
		if all = append(all, m); !s.hold("hostile", m) {
			t.Fatalf("only %d jobs are held", len(all))
		}
	}
	if s.hold("hostile", &message{}) || s.held != maxHeld {
		t.Errorf("%d jobs are held", s.held)
	}
	if !s.take("other") {
		t.Error("another tenant has no slot")
	}
	if _, more := s.next("other"); more {
		t.Error("another tenant gets a job that is not its own")
	}
	for i, want := range all[:3] {
		if m, ok := s.next("hostile"); !ok || m != want {
			t.Errorf("job %d is out of its turn", i)
		}
	}
	given := 0
	s.drop(func(jetstream.Msg) { given++ })
	if given != maxHeld-3 || s.held != 0 {
		t.Errorf("%d jobs given back, %d still held", given, s.held)
	}
	for _, size := range []int{maxHeldBytes + 1, 1} { // one is held, however large
		if got := s.hold("hostile", &message{data: make([]byte, size)}); got != (size > 1) {
			t.Errorf("%d more bytes are held: %t", size, got)
		}
	}
	s.drop(func(jetstream.Msg) {})
	for range 2 {
		if _, more := s.next("hostile"); more {
			t.Error("a job after all were given back")
		}
	}
	if fmt.Sprint(s.working) != "map[]" {
		t.Errorf("slots left over: %v", s.working)
	}
}
