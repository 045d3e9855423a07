package service_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/service"
)

// owner answers the requests that other workers forward to the only partition, with answers by operation. An answer
// that is an [*events.ServiceError] refuses.
func owner(env *workertest.Env, answers map[string]any) (received func() []string) {
	env.T.Helper()
	var mu sync.Mutex
	var names []string
	for name, answer := range answers {
		data, err := codec.Marshal(answer)
		if err != nil {
			env.T.Fatal(err)
		}
		_, err = env.Conn.Subscribe(events.OwnerSubject(0, name), func(m *nats.Msg) {
			var w events.Await
			err := codec.Unmarshal(m.Data, &w)
			mu.Lock()
			if names = append(names, name); err != nil || w.Waits() && w.Limit() > 0 {
				names = append(names, "waits")
			}
			mu.Unlock()
			out := &nats.Msg{Data: data, Header: nats.Header{}}
			if e, refused := answer.(*events.ServiceError); refused {
				out.Header.Set(micro.ErrorCodeHeader, string(e.Code))
			}
			_ = m.RespondMsg(out)
		})
		if err != nil {
			env.T.Fatal(err)
		}
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(names)
	}
}

// A worker that forwards a request for a history waits with a request for stats: the one for the history does not
// wait, and has the time of any answer.
func TestForwardedWait(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
	received := owner(env, map[string]any{
		"stats": &events.StatsResponse{V: events.Version}, "context": &events.ContextResponse{V: events.Version, Generation: 7},
	})
	about := events.Address{Tenant: "acme", Session: "s"}.About()
	out, err := relay(env).Context(t.Context(), &events.ContextRequest{About: about, Await: events.Await{Turn: 3}})
	if err != nil || out.Generation != 7 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got, want := received(), []string{"stats", "waits", "context"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A large history of another worker counts as memory until its request ends, whether it waited for a turn or not.
func TestMemoryOfForwardedAnswers(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
	l := env.Limit(limit.Config{})
	text := codec.Raw(`"` + strings.Repeat("x", 500_000) + `"`)
	owner(env, map[string]any{
		"stats": &events.StatsResponse{V: events.Version}, "context": &events.ContextResponse{V: events.Version, Messages: []codec.Raw{text}},
	})
	about := events.Address{Tenant: "acme", Session: "s"}.About()
	s := relay(env)
	for _, wait := range []events.Await{{}, {Turn: 3}} {
		op := l.Begin(limit.Account{Tenant: "acme"})
		if _, err := s.Context(op.With(t.Context()), &events.ContextRequest{About: about, Await: wait}); err != nil {
			t.Fatal(err)
		}
		if n := l.Held(limit.Memory); n < int64(len(text)) {
			t.Errorf("after a wait %v: %d bytes count", wait.Waits(), n)
		}
		op.End()
	}
	if n := l.Held(limit.Memory); n > 0 {
		t.Errorf("%d bytes are held", n)
	}
}

// A rewind that was taken is answered as taken, also where the history after it cannot be read: the answer has no
// context then.
func TestTakenWithoutContext(t *testing.T) {
	t.Parallel()
	for _, code := range []events.Code{events.CodeGone, events.CodeUnavailable, events.CodeInvalidHistory} {
		env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
		received := owner(env, map[string]any{
			"outcome": &events.OutcomeResponse{V: events.Version, Kind: events.KindRewind, Accepted: true, Generation: 2, Compaction: &events.HistoryEntry{Compacted: true}},
			"context": events.Refuse(code, "no text", ""),
		})
		out, err := relay(env).Publish(t.Context(), &service.Event{
			Address: events.Address{Tenant: "acme", Session: "s"}, Kind: events.KindRewind, Payload: &events.Rewind{Generation: new(int64)}, Wait: events.MaxWait,
		})
		if err != nil || !out.Decided || !out.Accepted || out.Seq == 0 || out.Generation != 2 || out.Code != "" || out.Context != nil {
			t.Errorf("%s: %+v, %v", code, out, err)
		}
		if !slices.Contains(received(), "context") {
			t.Errorf("%s: the history was not requested", code)
		}
	}
}

// While an event waits for its acknowledgement, its text alone is in memory, as the limit counts it: decoded messages may
// take as much again.
func TestPublishLetsPayloadGo(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	w := env.StartReady("a", observe.Listener{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in := &service.Event{Address: events.Address{Tenant: "default", Session: "s"}, Kind: events.KindTurn, Payload: &events.Turn{}, Text: workertest.Turn(1)}
	if _, err := w.Worker.Service().Publish(ctx, in); err == nil || in.Payload != nil || in.Text != nil {
		t.Errorf("%v, %+v", err, in)
	}
}
