package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// A session resumed without a worker has what it had, system prompt and tools too,
// whatever was retracted since it was last published.
func TestResumeAlone(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	config := small
	config.System, config.Tools = "be brief", json.RawMessage(`[{"name":"f"}]`)
	s := env.open(t, c, "s", config)
	for range 8 {
		publish(t, s, user("question "+words(100)), assistant("answer "+words(300)))
	}
	eventually(t, s, "compacted twice", func(h *History) bool { return h.Generation >= 2 })
	env.context(t, s, 0)
	env.stop()
	same := func(when string) {
		t.Helper()
		other := env.client(t)
		defer other.Close()
		want, got := history(t, s), history(t, env.open(t, other, "s", Config{}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-agent +resumed):\n%s", when, diff)
		}
	}
	same("as it was published")
	publish(t, s, user("alone"), assistant("no worker compacts"))
	same("with a turn after it")
	m, err := stream.LastOf(t.Context(), env.nc, topology.LogStream, "log.*.turn.default.s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.js.Publish(t.Context(), "session.turn.default.s", m.Data); err != nil {
		t.Fatal(err)
	}
	same("with that turn in the log twice")
	if err := s.Publish(t.Context(), Turn{ReplacesFrom: 3, Messages: []any{user("otherwise")}}); err != nil {
		t.Fatal(err)
	}
	if h := history(t, s); h.Turn != 3 || !strings.Contains(string(h.Messages[len(h.Messages)-1]), "otherwise") {
		t.Errorf("after the edit: turn %d, %s", h.Turn, payloads(h.Messages))
	}
	same("with turns retracted that were published")
	if err := s.Publish(t.Context(), Turn{ReplacesFrom: 1, Messages: []any{user("another")}}); err != nil {
		t.Fatal(err)
	}
	same("with all of them retracted")
	env.start(t)
	got := env.context(t, s, history(t, s).Generation)
	if diff := cmp.Diff(payloads(got.Messages), payloads(history(t, s).Messages)); diff != "" {
		t.Errorf("when a worker is back (-worker +agent):\n%s", diff)
	}
}

// A history that is too large to be published is requested, in pages.
func TestMessagesOmitted(t *testing.T) {
	t.Parallel()
	env := newEnvOf(t, embedded.Config{MaxPayload: 128 << 10})
	env.start(t)
	c := env.client(t)
	defer c.Close()
	s := env.open(t, c, "s", Config{Model: Model{Provider: "anthropic", Name: "claude-sonnet-4-20250514", ContextWindow: 150_000, MaxOutputTokens: 8000}})
	for n := 0; n < 40 && history(t, s).Generation == 0; n++ {
		publish(t, s, user(fmt.Sprintf("%d %s", n, strings.Repeat("a word ", 2000))), assistant(strings.Repeat("an answer ", 500)))
		env.context(t, s, 0)
	}
	h := history(t, s)
	size := 0
	for _, m := range h.Messages {
		size += len(m)
	}
	if h.Generation == 0 || size < 128<<10 {
		t.Fatalf("generation %d with %d bytes: the test shows nothing", h.Generation, size)
	}
	if diff := cmp.Diff(payloads(env.pages(t, s)), payloads(h.Messages)); diff != "" {
		t.Errorf("(-worker +client):\n%s", diff)
	}
}

// A user who may not read the streams resumes from a worker.
func TestTenantWithoutStreams(t *testing.T) {
	t.Parallel()
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Users: []*server.User{
			{Username: "operator", Password: "x"},
			{Username: "acme", Password: "x", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"session.turn.acme.*", "session.rewind.acme.*", "compactd.*.acme"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"session.compacted.acme.*", "session.budget.acme.*", "session.rejected.acme.*", "_INBOX.>"}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go ns.Start()
	defer ns.Shutdown()
	if !ns.ReadyForConnections(waitLimit) {
		t.Fatal("the server does not start")
	}
	address := ns.Addr().String()
	env := newEnvAt(t, func() (*nats.Conn, error) {
		return connect.Open(context.Background(), connect.Options{URL: "nats://operator:x@" + address})
	})
	env.start(t)
	open := func() *Session {
		c, err := Connect(t.Context(), Options{URL: "nats://acme:x@" + address, Tenant: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return env.open(t, c, "s", small)
	}
	s := open()
	for range 8 {
		publish(t, s, user("question "+words(100)), assistant("answer "+words(300)))
	}
	eventually(t, s, "compacted", func(h *History) bool { return h.Generation >= 1 })
	if err := s.Publish(t.Context(), Turn{ReplacesFrom: 2, Messages: []any{user("otherwise")}}); err != nil {
		t.Fatal(err)
	}
	if h, again := history(t, s), history(t, open()); h.Turn != 2 || h.Generation == 0 || !cmp.Equal(payloads(h.Messages), payloads(again.Messages)) {
		t.Errorf("turn %d, generation %d: %s\nresumed: %s", h.Turn, h.Generation, h.Messages, again.Messages)
	}
}

// pages are all messages that a worker holds.
func (env *testEnv) pages(t *testing.T, s *Session) []codec.Raw {
	t.Helper()
	h, err := s.c.history(t.Context(), s.at, events.Await{})
	if err != nil {
		t.Fatal(err)
	}
	if h.Pages < 2 {
		t.Errorf("the history has %d pages", h.Pages)
	}
	return h.Messages
}
