package client

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// refusal waits until a session reports a refused turn.
func refusal(t *testing.T, s *Session) *Error {
	t.Helper()
	for until := time.Now().Add(waitLimit); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if _, err := s.Context(t.Context()); err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			return e
		}
	}
	t.Fatal("nothing was refused")
	return nil
}

// A refused turn is reported once. The session returns to what the log holds and goes
// on; the turns parked behind it are retracted.
func TestRefusedTurn(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", small)
	publish(t, s, user("one"))
	if err := s.Configure(Config{Policy: map[string]any{"threshold": 7}}); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("two"))
	publish(t, s, user("three"))
	env.start(t)
	if e := refusal(t, s); e.Code != CodeBadPolicy || e.Turn != 2 {
		t.Errorf("refused: %v", e)
	}
	if h := history(t, s); len(h.Messages) != 1 || h.Turn != 1 {
		t.Errorf("after the refusal: turn %d, %s", h.Turn, payloads(h.Messages))
	}
	if err := s.Configure(Config{}); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("two again"))
	want := []string{`{"content":"one","role":"user"}`, `{"content":"two again","role":"user"}`}
	if diff := cmp.Diff(want, payloads(env.context(t, s, 0).Messages)); diff != "" {
		t.Errorf("what the worker holds (-want +got):\n%s", diff)
	}
}

// The second of two agents on one session gets an error, and has what the first published.
func TestTurnConflict(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	first, second := env.open(t, c, "s", small), env.open(t, c, "s", small)
	publish(t, first, user("of the first"))
	publish(t, second, user("of the second"))
	if e := refusal(t, second); e.Code != CodeTurnConflict || e.Turn != 1 {
		t.Errorf("refused: %v", e)
	}
	publish(t, second, assistant("to the first"))
	want := []string{`{"content":"of the first","role":"user"}`, `{"content":"to the first","role":"assistant"}`}
	if diff := cmp.Diff(want, payloads(history(t, second).Messages)); diff != "" {
		t.Errorf("the second (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, payloads(env.context(t, second, 0).Messages)); diff != "" {
		t.Errorf("the worker (-want +got):\n%s", diff)
	}
}

// A turn that the log lost after it was acknowledged, as in a power loss, is sent
// again with those after it.
func TestTurnGap(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", small)
	publish(t, s, user("one"))
	publish(t, s, assistant("two"))
	lost, err := env.last(s)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("three"))
	stream, err := env.js.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	env.start(t)
	for until := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		gap := s.state.from
		s.mu.Unlock()
		if gap == 2 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("no gap was reported")
		}
	}
	publish(t, s, assistant("four"))
	if diff := cmp.Diff(payloads(history(t, s).Messages), payloads(env.context(t, s, 0).Messages)); diff != "" || history(t, s).Turn != 4 {
		t.Errorf("turn %d (-client +worker):\n%s", history(t, s).Turn, diff)
	}
}

// An agent drops what an operator has erased, gets an error, and publishes none of it
// again.
func TestErased(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", small)
	publish(t, s, user("a secret"), assistant("kept"))
	if _, err := env.js.Publish(t.Context(), "session.forget.default.s", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if e := refusal(t, s); e.Code != CodeForgotten {
		t.Errorf("reported: %v", e)
	}
	if h := history(t, s); len(h.Messages) != 0 || h.Turn != 0 {
		t.Errorf("still there: %s", h.Messages)
	}
	publish(t, s, user("again"))
	want := []string{`{"content":"again","role":"user"}`}
	if diff := cmp.Diff(want, payloads(env.context(t, s, 0).Messages)); diff != "" {
		t.Errorf("(-want +worker):\n%s", diff)
	}
}

// reconnect interrupts the connection of a client, and waits until it is back.
func reconnect(t *testing.T, c *Client) {
	t.Helper()
	before := c.nc.Stats().Reconnects
	if err := c.nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection", func() bool { return c.nc.Stats().Reconnects > before && c.nc.IsConnected() })
	if err := c.nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(waitLimit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("no sign of %s", what)
		}
	}
}

// An erasure that was received before the missed outcomes were fetched is applied once, however often the
// outcomes are read.
func TestErasedOnce(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", small)
	publish(t, s, user("a secret"), assistant("kept"))
	reconnect(t, c)
	if _, err := env.js.Publish(t.Context(), "session.forget.default.s", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the erasure", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.state.phase == refused
	})
	if e := refusal(t, s); e.Code != CodeForgotten {
		t.Errorf("reported: %v", e)
	}
	publish(t, s, user("again"))
	for i := range 3 {
		if h, err := s.Context(t.Context()); err != nil || len(h.Messages) != 1 || h.Turn != 1 {
			t.Errorf("after %d reconnects: %+v, %v", i+1, h, err)
		}
		reconnect(t, c)
	}
}

// An erasure that was missed is reported by the call that finds it.
func TestErasureMissed(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", small)
	publish(t, s, user("a secret"), assistant("kept"))
	for _, sub := range s.subs {
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := env.js.Publish(t.Context(), "session.forget.default.s", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the erasure", func() bool {
		_, err := stream.LastOf(t.Context(), env.nc, topology.OutcomesStream, outcomesOf(events.KindForgotten, s.at))
		return err == nil
	})
	reconnect(t, c)
	if h, err := s.Context(t.Context()); !errors.Is(err, CodeForgotten) {
		t.Errorf("%+v, %v", h, err)
	}
}

// A reset that is received twice has the history sent once, also after an end.
func TestResetOnce(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	s := env.open(t, env.client(t), "s", Config{})
	publish(t, s, user("one"))
	reset, err := codec.Marshal(events.Rejected{Header: events.Header{V: events.Version, ID: "r"}, Seq: s.acked, Kind: events.KindTurn, Code: events.CodeSessionReset})
	if err != nil {
		t.Fatal(err)
	}
	s.receive(events.KindRejected, reset, 0)
	publish(t, s, assistant("two"))
	before := s.acked
	s.receive(events.KindRejected, reset, 0)
	publish(t, s, user("three"))
	if s.acked != before+1 || s.view.last != 3 {
		t.Errorf("%d events after the reset came twice, turn %d", s.acked-before, s.view.last)
	}
	if err := s.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("again"))
	before = s.acked
	s.receive(events.KindRejected, reset, 0)
	publish(t, s, assistant("and again"))
	if s.acked != before+1 || s.view.last != 2 {
		t.Errorf("%d events after the end, turn %d", s.acked-before, s.view.last)
	}
}
