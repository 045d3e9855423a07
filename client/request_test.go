package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Every request is answered: overflow, manual compaction, rewind, recall, search,
// check.
func TestRequests(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	config := small
	config.Model.ContextWindow = 100_000
	s := env.open(t, c, "s", config)
	if _, err := s.Compact(t.Context(), ""); !errors.Is(err, CodeUnknownSession) {
		t.Errorf("compact without turns: %v", err)
	}
	for n := range 6 {
		publish(t, s, user(fmt.Sprintf("question %d %s", n, words(100))), assistant("answer "+words(300)))
	}
	originals := payloads(history(t, s).Messages)

	refused := errors.New(`400 Bad Request {"error":{"message":"This model's maximum context length is 2000 tokens. However, your messages resulted in 2600 tokens.","code":"context_length_exceeded"}}`)
	got, err := s.Overflow(t.Context(), refused, 400)
	if err != nil || !got.Compacted || got.Reason != "overflow" || history(t, s).Generation < got.Generation { // a summary may have come since
		t.Fatalf("overflow: %+v, %v; history of generation %d", got, err, history(t, s).Generation)
	}
	if _, err := s.Overflow(t.Context(), "Rate limit reached", 429); !errors.Is(err, CodeNotOverflow) {
		t.Errorf("a rate limit: %v", err)
	}
	if back, err := s.Rewind(t.Context(), 0); err != nil || back.Reason != "rewind" {
		t.Errorf("rewind: %+v, %v", back, err)
	}
	if diff := cmp.Diff(originals, payloads(history(t, s).Messages)); diff != "" {
		t.Errorf("after the rewind (-published +got):\n%s", diff)
	}
	if _, err := s.Rewind(t.Context(), 99); !errors.Is(err, CodeUnknownGeneration) {
		t.Errorf("rewind to nowhere: %v", err)
	}
	if got, err := s.Compact(t.Context(), "question 3"); err != nil || got.Reason != "manual" || history(t, s).Generation < got.Generation {
		t.Errorf("compact: %+v, %v", got, err)
	}
	if m, err := s.Recall(t.Context(), 1, 0); err != nil || payloads(m)[0] != originals[0] {
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
		t.Errorf("check: %+v %v, with more %+v %v, last outcome %+v", now, err, more, err2, s.Budget())
	}
	files, err := s.Attach(t.Context(), Attach{
		Files:    []File{{Name: "a.txt", Text: words(20)}, {Name: "b.txt", Text: words(20_000)}, {Name: "c.zip", Type: "archive", Bytes: 1 << 30}, {Name: "empty"}},
		Messages: []any{user("See these.")}, Focus: "words", Policy: json.RawMessage(`{"files":{"share":0.5}}`), Wait: -1,
	})
	if err != nil || len(files.Files) != 4 || !files.Budget.Fits || files.Budget.EstimatedInput <= now.EstimatedInput {
		t.Fatalf("attach: %+v, %v", files, err)
	}
	if f := files.Files; f[0].Action != FileWhole || f[0].Text != words(20) || f[1].Action != FileSummary || f[1].Model != "embedded" || f[3].Action != FileWhole {
		t.Errorf("attach: %+v", f)
	}
	if _, err := s.Attach(t.Context(), Attach{Policy: json.RawMessage(`{"files":7}`)}); !errors.Is(err, CodeBadPolicy) {
		t.Errorf("attach under no policy: %v", err)
	}
	if err := s.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	publish(t, s, user("again"))
	if h := env.context(t, s, 0); len(h.Messages) != 1 || history(t, s).Turn != 1 {
		t.Errorf("after the end: %s", h.Messages)
	}
	env.stop()
	again := env.open(t, env.client(t), "s", Config{})
	if h := history(t, again); h.Turn != 1 || len(h.Messages) != 1 {
		t.Errorf("the session that ended is resumed: turn %d", h.Turn)
	}
	if _, err := again.Check(t.Context()); !errors.Is(err, CodeUnavailable) {
		t.Errorf("without a worker: %v", err)
	}
}

// A user who may not read the streams gets the answer to a request that was published while the connection
// was down, and the history with it.
func TestMissedAnswer(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	env.start(t)
	c := env.client(t)
	defer c.Close()
	c.reads = new(bool)
	config := small
	config.Model.ContextWindow = 100_000
	s := env.open(t, c, "s", config)
	for n := range 6 {
		publish(t, s, user(fmt.Sprintf("question %d %s", n, words(100))), assistant("answer "+words(300)))
	}
	for _, sub := range s.subs { // it receives no outcome
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
	missed := func(k events.Kind, request func(context.Context) (Compaction, error)) (got Compaction, err error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err = request(ctx)
		}()
		waitFor(t, "the request", func() bool {
			_, err := stream.LastOf(ctx, env.nc, topology.LogStream, "log.*."+string(k)+".default.s")
			return err == nil
		})
		reconnect(t, c)
		<-done
		return got, err
	}
	got, err := missed(events.KindCompact, func(ctx context.Context) (Compaction, error) { return s.Compact(ctx, "") })
	if err != nil || !got.Compacted || got.Reason != "manual" || !got.Budget.Fits || history(t, s).Generation < got.Generation {
		t.Errorf("compact: %+v, %v; history of generation %d", got, err, history(t, s).Generation)
	}
	got, err = missed(events.KindRewind, func(ctx context.Context) (Compaction, error) { return s.Rewind(ctx, 99) })
	if !errors.Is(err, CodeUnknownGeneration) {
		t.Errorf("rewind to nowhere: %+v, %v", got, err)
	}
}

// A turn that is replaced between two of its pages is read again from its beginning.
func TestRecallOfReplacedTurn(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	s := env.open(t, env.client(t), "s", Config{})
	pages := []events.RecallResponse{
		{Seq: 1, Page: 1, Pages: 2, Messages: []codec.Raw{codec.Raw(`"first"`)}},
		{Seq: 9, Page: 2, Pages: 2, Messages: []codec.Raw{codec.Raw(`"d"`)}},
		{Seq: 9, Page: 1, Pages: 2, Messages: []codec.Raw{codec.Raw(`"c"`)}},
		{Seq: 9, Page: 2, Pages: 2, Messages: []codec.Raw{codec.Raw(`"d"`)}},
	}
	sub, err := env.nc.Subscribe(events.OfTenant(events.SubjectRecall, events.DefaultTenant), func(m *nats.Msg) {
		var in events.RecallRequest
		if err := codec.Unmarshal(m.Data, &in); err != nil || len(pages) == 0 || in.Page != pages[0].Page {
			t.Errorf("%s: %v, %d answers left", m.Data, err, len(pages))
			return
		}
		data, err := codec.Marshal(pages[0])
		pages = pages[1:]
		if err = errors.Join(err, m.Respond(data)); err != nil {
			t.Error(err)
		}
	})
	if err = errors.Join(err, env.nc.Flush()); err != nil {
		t.Fatal(err)
	}
	m, err := s.Recall(t.Context(), 1, -1)
	if diff := cmp.Diff([]string{`"c"`, `"d"`}, payloads(m)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := sub.Drain(); err != nil || len(pages) > 0 {
		t.Errorf("%v, %d answers left", err, len(pages))
	}
}

// An outcome from before the end of a session does not reach the session that begins again,
// however late it is received.
func TestLateCompactionAfterEnd(t *testing.T) {
	env := newEnv(t)
	s := env.open(t, env.client(t), "s", Config{})
	for n := range 3 {
		publish(t, s, user(fmt.Sprintf("question %d", n)))
	}
	late, err := codec.Marshal(events.Compacted{
		Header: events.Header{V: events.Version, ID: "late"}, Generation: 1, Compacted: true, Reason: events.ReasonThreshold,
		Through: events.Through{Seq: 3, Turn: 3}, Format: events.OpenAI,
		Messages: []codec.Raw{codec.Raw(`{"role":"user","content":"of the session that ended"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.receive(events.KindCompacted, late, 0)
	if h := history(t, s); len(h.Messages) > 0 || h.Turn > 0 {
		t.Errorf("after the end there are turn %d and %s", h.Turn, h.Messages)
	}
	publish(t, s, user("again"))
	s.receive(events.KindCompacted, late, 0)
	if h := history(t, s); len(h.Messages) != 1 || h.Turn != 1 || s.Budget() != (Budget{}) || s.missed() {
		t.Errorf("after it there are turn %d and %s", h.Turn, h.Messages)
	}
}
