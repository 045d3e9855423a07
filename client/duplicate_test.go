package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/edge"
)

// copied is a client behind a proxy that publishes turns of another tenant under the client's
// message ids, before the client's own events reach the server.
func (env *testEnv) copied(t *testing.T, steals func() bool, report func(Duplicate)) *Client {
	t.Helper()
	nc, err := nats.Connect("nats://"+env.address, nats.SetCustomDialer(&edge.Edge{Steal: func(id string) error {
		if !steals() {
			return nil
		}
		_, err := env.js.Publish(t.Context(), "session.turn.evil.x", []byte(`{"messages":[]}`), jetstream.WithMsgID(id))
		return err
	}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	c, err := Connect(t.Context(), Options{Conn: nc, OnDuplicate: report})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// turns lists the numbers of a session's turns in the log.
func (env *testEnv) turns(t *testing.T, s *Session) (got []int64) {
	t.Helper()
	if err := stream.ReadSubject(t.Context(), env.nc, topology.LogStream, "log.*.turn."+s.at.String(), 1, func(m stream.LogMessage) error {
		in, err := events.DecodeTurn(m.Data)
		if err == nil {
			got = append(got, in.Number)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// A message id that another tenant has used before costs no event: turns and requests
// are stored, once, under other ids, and answered; each copy is reported.
func TestCopiedID(t *testing.T) {
	t.Parallel()
	env := newEnvOf(t, embedded.Config{Listen: "127.0.0.1:-1"})
	env.start(t)
	var ids, copies atomic.Int64
	var reports []Duplicate
	c := env.copied(t, func() bool { return ids.Add(1)%2 == 1 && copies.Add(1) > 0 }, func(d Duplicate) { reports = append(reports, d) })
	s := env.open(t, c, "s", small)
	for n := range 3 {
		publish(t, s, user(fmt.Sprint("question ", n)), assistant("answer"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if _, err := s.Compact(ctx, ""); !errors.Is(err, CodeNothingToDo) && !errors.Is(err, CodeNotEnoughMessages) {
		t.Errorf("compact: %v; want its answer", err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, env.turns(t, s)); diff != "" {
		t.Errorf("turns in the log (-want +got):\n%s", diff)
	}
	if h := history(t, s); h.Turn != 3 || len(h.Messages) != 6 {
		t.Errorf("turn %d, %d messages", h.Turn, len(h.Messages))
	}
	if len(reports) != 4 || copies.Load() != 4 || slices.ContainsFunc(reports, func(d Duplicate) bool { return d.Session != "s" || d.ID == "" || d.Seq == 0 }) {
		t.Errorf("of %d copies were reported: %+v", copies.Load(), reports)
	}
}

// Where every id is copied, publishing ends with an error that names the cause, and
// the session goes on from what the log holds.
func TestEveryIDCopied(t *testing.T) {
	t.Parallel()
	env := newEnvOf(t, embedded.Config{Listen: "127.0.0.1:-1"})
	var honest atomic.Bool
	c := env.copied(t, func() bool { return !honest.Load() }, nil)
	s := env.open(t, c, "s", small)
	var e *Error
	if err := s.Publish(t.Context(), Turn{Messages: []any{user("one")}}); !errors.Is(err, CodeDuplicateID) || !errors.As(err, &e) || e.Hint == "" {
		t.Fatalf("got %v", err)
	}
	honest.Store(true)
	publish(t, s, user("two"))
	if diff := cmp.Diff([]int64{1}, env.turns(t, s)); diff != "" {
		t.Errorf("turns in the log (-want +got):\n%s", diff)
	}
}
