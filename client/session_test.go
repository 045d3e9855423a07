package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/broker/embedded"
	"compactd/internal/events"
)

// A turn goes out with what holds from then on, and comes back as it was sent; what
// was configured is sent once.
func TestPublish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(t)
	defer c.Close()
	s := w.open(t, c, "s", Config{Model: small.Model, System: "be brief", Tools: json.RawMessage(`[ {"name":"f"} ]`)})
	usage := map[string]int{"prompt_tokens": 12, "completion_tokens": 3}
	if err := s.Publish(t.Context(), Turn{Messages: []any{user("<a> & b"), json.RawMessage(`{"role": "assistant", "content": "1.0"}`)}, Usage: usage}); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("more"))
	h := history(t, s)
	want := []string{`{"content":"<a> & b","role":"user"}`, `{"role":"assistant","content":"1.0"}`, `{"content":"more","role":"user"}`}
	if diff := cmp.Diff(want, texts(h.Messages)); diff != "" || string(h.System) != `"be brief"` || string(h.Tools) != `[{"name":"f"}]` || h.Turn != 2 || h.Format != "openai" {
		t.Errorf("the history is %+v (-want +got):\n%s", h, diff)
	}
	var got []string
	err := broker.ReadSubject(t.Context(), w.nc, broker.LogStream, "log.*.turn.default.s", 1, func(m broker.LogMessage) error {
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

// What a worker would refuse on sight is an error with its code, and is not sent.
func TestRefusedOnSight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(t)
	defer c.Close()
	s := w.open(t, c, "s", small)
	for code, turn := range map[Code]Turn{
		CodeBadMessage: {Messages: []any{"hello"}},
		CodeOutOfRange: {Messages: []any{user("a")}, ReplacesFrom: 2},
		CodeTooLarge:   {Messages: []any{user(strings.Repeat("a", events.MaxTurnBytes))}},
		"bad_type":     {Messages: []any{user("a")}, Usage: map[string]any{"prompt_tokens": 1.5, "completion_tokens": 1}},
	} {
		var e *Error
		if err := s.Publish(t.Context(), turn); !errors.Is(err, code) || !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("%s: got %v", code, err)
		}
	}
	if _, err := w.last(s); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("something was sent: %v", err)
	}
	if _, err := c.Open(t.Context(), "a.b", small); !errors.Is(err, Code("bad_id")) {
		t.Errorf("a bad name: %v", err)
	}
	s.Close()
	if err := s.Publish(t.Context(), Turn{}); !errors.Is(err, CodeClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// refusal waits until a session tells that a turn was refused.
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

// A turn that was refused is told once; the session returns to what the log holds,
// and goes on, with what waited behind it taken back.
func TestRefusedTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(t)
	defer c.Close()
	s := w.open(t, c, "s", small)
	publish(t, s, user("one"))
	if err := s.Configure(Config{Policy: map[string]any{"threshold": 7}}); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("two"))
	publish(t, s, user("three"))
	w.start(t)
	if e := refusal(t, s); e.Code != CodeBadPolicy || e.Turn != 2 {
		t.Errorf("refused: %v", e)
	}
	if h := history(t, s); len(h.Messages) != 1 || h.Turn != 1 {
		t.Errorf("after the refusal: turn %d, %s", h.Turn, texts(h.Messages))
	}
	if err := s.Configure(Config{}); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("two again"))
	want := []string{`{"content":"one","role":"user"}`, `{"content":"two again","role":"user"}`}
	if diff := cmp.Diff(want, texts(w.context(t, s, 0).Messages)); diff != "" {
		t.Errorf("what the worker holds (-want +got):\n%s", diff)
	}
}

// The second of two agents on one session is told, and has what the first published.
func TestTurnConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t)
	c := w.client(t)
	defer c.Close()
	first, second := w.open(t, c, "s", small), w.open(t, c, "s", small)
	publish(t, first, user("of the first"))
	publish(t, second, user("of the second"))
	if e := refusal(t, second); e.Code != CodeTurnConflict || e.Turn != 1 {
		t.Errorf("refused: %v", e)
	}
	publish(t, second, say("to the first"))
	want := []string{`{"content":"of the first","role":"user"}`, `{"content":"to the first","role":"assistant"}`}
	if diff := cmp.Diff(want, texts(history(t, second).Messages)); diff != "" {
		t.Errorf("the second (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, texts(w.context(t, second, 0).Messages)); diff != "" {
		t.Errorf("the worker (-want +got):\n%s", diff)
	}
}

// A turn that the log lost after it was acknowledged, as in a power loss, is sent
// again with those after it.
func TestTurnGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(t)
	defer c.Close()
	s := w.open(t, c, "s", small)
	publish(t, s, user("one"))
	publish(t, s, say("two"))
	lost, err := w.last(s)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("three"))
	stream, err := w.js.Stream(t.Context(), broker.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	w.start(t)
	for until := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		gap := s.resend
		s.mu.Unlock()
		if gap == 2 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("no gap was told")
		}
	}
	publish(t, s, say("four"))
	if diff := cmp.Diff(texts(history(t, s).Messages), texts(w.context(t, s, 0).Messages)); diff != "" || history(t, s).Turn != 4 {
		t.Errorf("turn %d (-client +worker):\n%s", history(t, s).Turn, diff)
	}
}

// An acknowledgement that is lost is settled by the next call: the turn counts once.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, embedded.Config{Listen: "127.0.0.1:-1"})
	l := newOneWay(t, w.address)
	c, err := Connect(t.Context(), Options{URL: "nats://" + l.listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := w.open(t, c, "s", small)
	publish(t, s, user("one"))
	l.silence()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Publish(ctx, Turn{Messages: []any{say("two")}}); !errors.Is(err, CodeUnacknowledged) {
		t.Fatalf("without an acknowledgement: %v", err)
	}
	if h := history(t, s); h.Turn != 2 || len(h.Messages) != 2 {
		t.Errorf("the turn is not in the history: turn %d", h.Turn)
	}
	l.heal()
	publish(t, s, user("three"))
	var got []int64
	if err := broker.ReadSubject(t.Context(), w.nc, broker.LogStream, "log.*.turn.default.s", 1, func(m broker.LogMessage) error {
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
	w := newWorld(t)
	w.start(t)
	c := w.client(t)
	defer c.Close()
	told := make(chan Compaction, 16)
	config := small
	config.OnCompaction = func(c Compaction) { told <- c }
	s := w.open(t, c, "s", config)
	before := history(t, s).Generation
	for range 6 {
		publish(t, s, user("question "+words(100)), say("answer "+words(300)))
	}
	got := <-told
	if !got.Compacted || got.Generation != 1 || got.TokensAfter >= got.TokensBefore || len(got.Stages) == 0 || got.Budget.AvailableInput != 1200 {
		t.Errorf("told: %+v", got)
	}
	publish(t, s, say("of the call that was made before"))
	last := lastTurn(t, w, s)
	if last.Generation != before {
		t.Errorf("the turn names generation %d", last.Generation)
	}
	h := history(t, s)
	publish(t, s, say("of the next call"))
	if last = lastTurn(t, w, s); last.Generation != h.Generation || h.Generation < 1 {
		t.Errorf("the turn names generation %d, not %d", last.Generation, h.Generation)
	}
}

func lastTurn(t *testing.T, w *world, s *Session) *events.Turn {
	t.Helper()
	m, err := broker.LastOf(t.Context(), w.nc, broker.LogStream, "log.*.turn."+s.at.String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := events.DecodeTurn(m.Data)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// What is asked for is answered: overflow, manual compaction, rewind, recall, search,
// check.
func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t)
	c := w.client(t)
	defer c.Close()
	config := small
	config.Model.ContextWindow = 100_000
	s := w.open(t, c, "s", config)
	if _, err := s.Compact(t.Context(), ""); !errors.Is(err, CodeUnknownSession) {
		t.Errorf("compact without turns: %v", err)
	}
	for n := range 6 {
		publish(t, s, user(fmt.Sprintf("question %d %s", n, words(100))), say("answer "+words(300)))
	}
	originals := texts(history(t, s).Messages)

	got, err := s.Overflow(t.Context(), errors.New(`400 Bad Request {"error":{"message":"This model's maximum context length is 2000 tokens. However, your messages resulted in 2600 tokens.","code":"context_length_exceeded"}}`), 400)
	if err != nil || !got.Compacted || got.Reason != "overflow" || history(t, s).Generation != got.Generation {
		t.Fatalf("overflow: %+v, %v", got, err)
	}
	if _, err := s.Overflow(t.Context(), "Rate limit reached", 429); !errors.Is(err, CodeNotOverflow) {
		t.Errorf("a rate limit: %v", err)
	}
	if back, err := s.Rewind(t.Context(), 0); err != nil || back.Reason != "rewind" {
		t.Errorf("rewind: %+v, %v", back, err)
	}
	if diff := cmp.Diff(originals, texts(history(t, s).Messages)); diff != "" {
		t.Errorf("after the rewind (-published +got):\n%s", diff)
	}
	if _, err := s.Rewind(t.Context(), 99); !errors.Is(err, CodeUnknownGeneration) {
		t.Errorf("rewind to nowhere: %v", err)
	}
	if got, err := s.Compact(t.Context(), "question 3"); err != nil || got.Reason != "manual" || history(t, s).Generation < got.Generation {
		t.Errorf("compact: %+v, %v", got, err)
	}
	if m, err := s.Recall(t.Context(), 1, 0); err != nil || texts(m)[0] != originals[0] {
		t.Errorf("recall: %s, %v", m, err)
	}
	if m, err := s.Recall(t.Context(), 2, -1); err != nil || len(m) != 2 {
		t.Errorf("recall of a turn: %s, %v", m, err)
	}
	if _, err := s.Recall(t.Context(), 99, 0); !errors.Is(err, CodeUnknownTurn) {
		t.Errorf("recall of nothing: %v", err)
	}
	if hits, err := s.Search(t.Context(), "question 4", 3); err != nil || len(hits) != 1 || hits[0].Turn != 5 || hits[0].Role != "user" {
		t.Errorf("search: %+v, %v", hits, err)
	}
	now, err := s.Check(t.Context())
	more, err2 := s.Check(t.Context(), user(words(500)))
	if err != nil || err2 != nil || !now.Fits || more.EstimatedInput <= now.EstimatedInput || s.Budget().Level == "" {
		t.Errorf("check: %+v %v, with more %+v %v, told %+v", now, err, more, err2, s.Budget())
	}
	if err := s.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("anew"))
	if h := w.context(t, s, 0); len(h.Messages) != 1 || history(t, s).Turn != 1 {
		t.Errorf("after the end: %s", h.Messages)
	}
	w.stop()
	again := w.open(t, w.client(t), "s", Config{})
	if h := history(t, again); h.Turn != 1 || len(h.Messages) != 1 {
		t.Errorf("the session that ended is resumed: turn %d", h.Turn)
	}
	if _, err := again.Check(t.Context()); !errors.Is(err, CodeUnavailable) {
		t.Errorf("without a worker: %v", err)
	}
}

// A session resumed without a worker has what it had, system prompt and tools too,
// whatever was withdrawn since it was told last.
func TestResumeAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t)
	c := w.client(t)
	defer c.Close()
	config := small
	config.System, config.Tools = "be brief", json.RawMessage(`[{"name":"f"}]`)
	s := w.open(t, c, "s", config)
	for range 8 {
		publish(t, s, user("question "+words(100)), say("answer "+words(300)))
	}
	eventually(t, s, "compacted twice", func(h *History) bool { return h.Generation >= 2 })
	w.context(t, s, 0)
	w.stop()
	same := func(when string) {
		t.Helper()
		other := w.client(t)
		defer other.Close()
		want, got := history(t, s), history(t, w.open(t, other, "s", Config{}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-agent +resumed):\n%s", when, diff)
		}
	}
	same("as it was told")
	publish(t, s, user("alone"), say("nobody compacts"))
	same("with a turn after it")
	if err := s.Publish(t.Context(), Turn{ReplacesFrom: 3, Messages: []any{user("otherwise")}}); err != nil {
		t.Fatal(err)
	}
	if h := history(t, s); h.Turn != 3 || !strings.Contains(string(h.Messages[len(h.Messages)-1]), "otherwise") {
		t.Errorf("after the edit: turn %d, %s", h.Turn, texts(h.Messages))
	}
	same("with turns withdrawn that were told")
	if err := s.Publish(t.Context(), Turn{ReplacesFrom: 1, Messages: []any{user("another")}}); err != nil {
		t.Fatal(err)
	}
	same("with all of them withdrawn")
	w.start(t)
	got := w.context(t, s, history(t, s).Generation)
	if diff := cmp.Diff(texts(got.Messages), texts(history(t, s).Messages)); diff != "" {
		t.Errorf("when a worker is back (-worker +agent):\n%s", diff)
	}
}

// A history that is too large to be told is asked for, in pages.
func TestMessagesOmitted(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, embedded.Config{MaxPayload: 128 << 10})
	w.start(t)
	c := w.client(t)
	defer c.Close()
	s := w.open(t, c, "s", Config{Model: Model{Provider: "anthropic", Name: "claude-sonnet-4-20250514", ContextWindow: 150_000, MaxOutputTokens: 8000}})
	for n := 0; n < 40 && history(t, s).Generation == 0; n++ {
		publish(t, s, user(fmt.Sprintf("%d %s", n, strings.Repeat("a word ", 2000))), say(strings.Repeat("an answer ", 500)))
		w.context(t, s, 0)
	}
	h := history(t, s)
	size := 0
	for _, m := range h.Messages {
		size += len(m)
	}
	if h.Generation == 0 || size < 128<<10 {
		t.Fatalf("generation %d with %d bytes: the test shows nothing", h.Generation, size)
	}
	if diff := cmp.Diff(texts(w.pages(t, s)), texts(h.Messages)); diff != "" {
		t.Errorf("(-worker +client):\n%s", diff)
	}
}

// A user who may not read the streams has a worker to ask.
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
	w := worldAt(t, func() (*nats.Conn, error) {
		return broker.Connect(context.Background(), broker.Options{URL: "nats://operator:x@" + address})
	})
	w.start(t)
	open := func() *Session {
		c, err := Connect(t.Context(), Options{URL: "nats://acme:x@" + address, Tenant: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return w.open(t, c, "s", small)
	}
	s := open()
	for range 8 {
		publish(t, s, user("question "+words(100)), say("answer "+words(300)))
	}
	eventually(t, s, "compacted", func(h *History) bool { return h.Generation >= 1 })
	if err := s.Publish(t.Context(), Turn{ReplacesFrom: 2, Messages: []any{user("otherwise")}}); err != nil {
		t.Fatal(err)
	}
	if h, again := history(t, s), history(t, open()); h.Turn != 2 || h.Generation == 0 || !cmp.Equal(texts(h.Messages), texts(again.Messages)) {
		t.Errorf("turn %d, generation %d: %s\nresumed: %s", h.Turn, h.Generation, h.Messages, again.Messages)
	}
}

// pages are all messages that a worker holds.
func (w *world) pages(t *testing.T, s *Session) []events.Raw {
	t.Helper()
	h, err := s.c.history(t.Context(), s.at)
	if err != nil {
		t.Fatal(err)
	}
	if h.Pages < 2 {
		t.Errorf("the history has %d pages", h.Pages)
	}
	return h.Messages
}
