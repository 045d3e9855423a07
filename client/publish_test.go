package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// A turn goes out with what holds from then on, and comes back as it was sent; what
// was configured is sent once.
func TestPublish(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", Config{Model: small.Model, System: "be brief", Tools: json.RawMessage(`[ {"name":"f"} ]`)})
	usage := map[string]int{"prompt_tokens": 12, "completion_tokens": 3}
	if err := s.Publish(t.Context(), Turn{Messages: []any{user("<a> & b"), json.RawMessage(`{"role": "assistant", "content": "1.0"}`)}, Usage: usage}); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("more"))
	h := history(t, s)
	want := []string{`{"content":"<a> & b","role":"user"}`, `{"role":"assistant","content":"1.0"}`, `{"content":"more","role":"user"}`}
	if diff := cmp.Diff(want, payloads(h.Messages)); diff != "" || string(h.System) != `"be brief"` || string(h.Tools) != `[{"name":"f"}]` || h.Turn != 2 || h.Format != "openai" {
		t.Errorf("the history is %+v (-want +got):\n%s", h, diff)
	}
	var got []string
	err := stream.ReadSubject(t.Context(), env.nc, topology.LogStream, "log.*.turn.default.s", 1, func(m stream.LogMessage) error {
		in, err := events.DecodeTurn(m.Data)
		if err == nil {
			got = append(got, fmt.Sprint(in.Number, in.Model != nil, in.System != nil, in.Tools != nil, in.Usage != nil))
		}
		return err
	})
	if diff := cmp.Diff([]string{"1 true true true true", "2 false false false false"}, got); diff != "" || err != nil {
		t.Errorf("%v; turns in the log (-want +got):\n%s", err, diff)
	}
}

// An event that a worker would refuse on sight is an error with a code, and is not sent.
func TestRefusedOnSight(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", small)
	for code, turn := range map[Code]Turn{
		CodeBadMessage: {Messages: []any{"hello"}},
		CodeOutOfRange: {Messages: []any{user("a")}, ReplacesFrom: 2},
		CodeTooLarge:   {Messages: []any{user(strings.Repeat("a", events.MaxTurnBytes))}},

		CodeTooManyMessages: {Messages: slices.Repeat([]any{user("a")}, events.MaxTurnMessages+1)},

		"missing_call_id": {Messages: []any{map[string]any{"role": "tool", "content": "x"}}},
	} {
		var e *Error
		if err := s.Publish(t.Context(), turn); !errors.Is(err, code) || !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("%s: got %v", code, err)
		}
	}
	if _, err := env.last(s); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("something was sent: %v", err)
	}
	if _, err := c.Open(t.Context(), strings.Repeat("x", 257), small); !errors.Is(err, Code("bad_id")) {
		t.Errorf("a bad name: %v", err)
	}
	s.Close()
	if err := s.Publish(t.Context(), Turn{}); !errors.Is(err, CodeClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// An acknowledgement that is lost is resolved by the next call: the turn counts once.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	env := newEnvOf(t, embedded.Config{Listen: "127.0.0.1:-1"})
	l := newOneWay(t, env.address)
	c, err := Connect(t.Context(), Options{URL: "nats://" + l.listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := env.open(t, c, "s", small)
	publish(t, s, user("one"))
	l.mute()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Publish(ctx, Turn{Messages: []any{assistant("two")}}); !errors.Is(err, CodeUnacknowledged) {
		t.Fatalf("without an acknowledgement: %v", err)
	}
	if h := history(t, s); h.Turn != 2 || len(h.Messages) != 2 {
		t.Errorf("the turn is not in the history: turn %d", h.Turn)
	}
	l.heal()
	publish(t, s, user("three"))
	var got []int64
	if err := stream.ReadSubject(t.Context(), env.nc, topology.LogStream, "log.*.turn.default.s", 1, func(m stream.LogMessage) error {
		in, err := events.DecodeTurn(m.Data)
		if err == nil {
			got = append(got, in.Number)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, got); diff != "" {
		t.Errorf("turns in the log (-want +got):\n%s", diff)
	}
}

// The usage of a call belongs to the history it was made with, whatever came between.
func TestGenerationOfACall(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	received := make(chan Compaction, 16)
	config := small
	config.OnCompaction = func(c Compaction) { received <- c }
	s := env.open(t, c, "s", config)
	before := history(t, s).Generation
	for range 6 {
		publish(t, s, user("question "+words(100)), assistant("answer "+words(300)))
	}
	got := <-received
	if !got.Compacted || got.Generation != 1 || got.TokensAfter >= got.TokensBefore || len(got.Stages) == 0 || got.Budget.AvailableInput != 1200 {
		t.Errorf("received: %+v", got)
	}
	publish(t, s, assistant("of the call that was made before"))
	last := lastTurn(t, env, s)
	if last.Generation != before {
		t.Errorf("the turn names generation %d", last.Generation)
	}
	h := history(t, s)
	publish(t, s, assistant("of the next call"))
	if last = lastTurn(t, env, s); last.Generation != h.Generation || h.Generation < 1 {
		t.Errorf("the turn names generation %d, not %d", last.Generation, h.Generation)
	}
}

func lastTurn(t *testing.T, env *testEnv, s *Session) *events.Turn {
	t.Helper()
	m, err := stream.LastOf(t.Context(), env.nc, topology.LogStream, "log.*.turn."+s.at.String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := events.DecodeTurn(m.Data)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Tools send requests, and others read, while the agent publishes (run with -race).
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", small)
	publish(t, s, user("one"))
	var work sync.WaitGroup
	for n := range 4 {
		work.Go(func() {
			for range 5 {
				if err := s.Publish(context.Background(), Turn{Messages: []any{user(fmt.Sprintf("of %d %s", n, words(60)))}}); err != nil {
					t.Errorf("publish: %v", err)
				}
				if h, err := s.Context(context.Background()); err != nil || h.Turn == 0 {
					t.Errorf("history: %v", err)
				}
				if _, err := s.Check(context.Background(), assistant("more")); err != nil {
					t.Errorf("check: %v", err)
				}
			}
		})
	}
	work.Wait()
	h := history(t, s)
	if diff := cmp.Diff(payloads(env.context(t, s, h.Generation).Messages), payloads(h.Messages)); h.Turn != 21 || h.Generation == history(t, s).Generation && diff != "" {
		t.Errorf("turn %d (-worker +client):\n%s", h.Turn, diff)
	}
}

// A setting of a policy that workers ignore reaches the agent as a note, and its turn counts.
func TestNotes(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	p := policy.Default()
	p.Summarize.Enabled, p.Locked = false, []string{"summarize"}
	var err error
	if env.config, err = compaction.NewConfig(p, measure.DefaultWindows()); err != nil {
		t.Fatal(err)
	}
	env.start(t)
	c := env.client(t)
	defer c.Close()
	notes := make(chan Note, 16)
	config := small
	config.Policy = map[string]any{"summarize": map[string]any{"enabled": true, "prepare": 0.5}}
	config.OnNote = func(n Note) { notes <- n }
	s := env.open(t, c, "s", config)
	publish(t, s, user("question"))
	got := <-notes
	if diff := cmp.Diff([]string{"summarize.enabled", "summarize.prepare"}, got.Fields); diff != "" || got.Code != "policy_locked" || got.Hint == "" {
		t.Errorf("%+v, fields (-want +got):\n%s", got, diff)
	}
	publish(t, s, user("another"))
	if h := history(t, s); h.Turn != 2 || len(h.Messages) != 2 {
		t.Errorf("turn %d with %d messages", h.Turn, len(h.Messages))
	}
}
