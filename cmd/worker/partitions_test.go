package main

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// newLog is a server with a log of n partitions.
func newLog(t *testing.T, n int) jetstream.JetStream {
	t.Helper()
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	nc, err := connect.Open(t.Context(), connect.Options{InProcess: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = topology.Ensure(t.Context(), js, topology.Config{Partitions: n, CreateBytes: 1 << 20})
	}
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// A growth is refused with a code while it could not be completed, or another one is under way; the same one is
// followed.
func TestGrowRefused(t *testing.T) {
	js := newLog(t, 2)
	members := coord.NewMembers(js, time.Hour)
	join := func() {
		t.Helper()
		if err := members.Heartbeat(t.Context(), coord.Member{Name: "a", Owner: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		before func()
		count  int
		code   events.Code // "" is none
	}{
		{func() {}, 4, events.CodeUnavailable},
		{join, 2, events.CodeOutOfRange}, // it has them, and never grew
		{func() {}, 8, events.CodeOutOfRange},
		{func() {}, 0, events.CodeOutOfRange},
		{func() {}, 4, ""},
		{func() {}, 8, codeGrowing},
		{func() {}, 4, ""},
	} {
		step.before()
		c := growCmd{Count: step.count, Yes: true}
		at, err := c.begin(t.Context(), js)
		refused, _ := errors.AsType[*growthError](err)
		if (step.code == "") != (err == nil) || err == nil && at.Count() != 4 || err != nil && (refused == nil || refused.code != step.code || refused.hint == "") {
			t.Errorf("to %d: %s, %#v, want %q", step.count, at, err, step.code)
		}
	}
}

// No log gets more partitions than a worker takes.
func TestGrowMost(t *testing.T) {
	c := growCmd{Count: 2 * partitions.Most, Yes: true}
	_, err := c.begin(t.Context(), newLog(t, partitions.Most))
	if refused, _ := errors.AsType[*growthError](err); refused == nil || refused.code != events.CodeOutOfRange {
		t.Errorf("grows: %v", err)
	}
}
