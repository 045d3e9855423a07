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

// copied is a client behind an edge that uses message ids for the turns of another
// tenant, before their own event comes to the server.
func (w *world) copied(t *testing.T, steals func() bool, report func(Duplicate)) *Client {
	t.Helper()
	nc, err := nats.Connect("nats://"+w.address, nats.SetCustomDialer(&edge.Edge{Steal: func(id string) error {
		if !steals() {
			return nil
		}
		_, err := w.js.Publish(t.Context(), "session.turn.evil.x", []byte(`{"messages":[]}`), jetstream.WithMsgID(id))
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
func (w *world) turns(t *testing.T, s *Session) (got []int64) {
	t.Helper()
	if err := stream.ReadSubject(t.Context(), w.nc, topology.LogStream, "log.*.turn."+s.at.String(), 1, func(m stream.LogMessage) error {
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
	w := newWorldOf(t, embedded.Config{Listen: "127.0.0.1:-1"})
	w.start(t)
	var ids, copies atomic.Int64
	var reports []Duplicate
	c := w.copied(t, func() bool { return ids.Add(1)%2 == 1 && copies.Add(1) > 0 }, func(d Duplicate) { reports = append(reports, d) })
	s := w.open(t, c, "s", small)
	for n := range 3 {
		publish(t, s, user(fmt.Sprint("question ", n)), say("answer"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if _, err := s.Compact(ctx, ""); !errors.Is(err, CodeNothingToDo) && !errors.Is(err, CodeNotEnoughMessages) {
		t.Errorf("compact: %v; want its answer", err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, w.turns(t, s)); diff != "" {
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
	w := newWorldOf(t, embedded.Config{Listen: "127.0.0.1:-1"})
	var honest atomic.Bool
	c := w.copied(t, func() bool { return !honest.Load() }, nil)
	s := w.open(t, c, "s", small)
	var e *Error
	if err := s.Publish(t.Context(), Turn{Messages: []any{user("one")}}); !errors.Is(err, CodeDuplicateID) || !errors.As(err, &e) || e.Hint == "" {
		t.Fatalf("got %v", err)
	}
	honest.Store(true)
	publish(t, s, user("two"))
	if diff := cmp.Diff([]int64{1}, w.turns(t, s)); diff != "" {
		t.Errorf("turns in the log (-want +got):\n%s", diff)
	}
}
