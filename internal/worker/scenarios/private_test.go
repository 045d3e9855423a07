package scenarios_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
)

// The content of a private tenant is summarized without a model, is not recalled, and its placeholders name no place to
// recall it from; no session lifts that. Neither agents nor models read its originals in another way.
func TestPrivateTenant(t *testing.T) {
	t.Parallel()
	writers := make(chan summarize.Writer, 64)
	env := workertest.Summarizing(t, workertest.SummarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		writers <- in.Writer
		return extract.New().Summarize(ctx, in)
	}))
	p := policy.Default()
	p.Limits.Private, p.Recall, p.RecallNotice = true, "tool", true
	if p.NamesPlaces() || p.NamesHashes() {
		t.Error("placeholders name places")
	}
	if over, ignored, err := p.Over(codec.Raw(`{"limits":{"private":false}}`)); err != nil || !over.Limits.Private || len(ignored) != 1 {
		t.Errorf("a session gets %+v, ignored %v, %v", over.Limits, ignored, err)
	}
	env.Config = workertest.NewConfig(t, p)
	r := env.StartReady("a", observe.Listener{})
	edge := env.StartEdge(r.Worker, nil)
	env.Fill("s", events.LaneBackground)
	if w := workertest.Next(t, writers, "summary"); w != summarize.NoModel || w.Allows("anthropic/claude-haiku-4-5") {
		t.Errorf("the summary may be written by %+v", w)
	}
	for _, in := range []string{`{"session":"s","turn":1}`, `{"session":"s","text":"word"}`} {
		e := env.Request(events.SubjectRecall, in, &events.SearchResponse{})
		if e == nil || e.Code != events.CodeForbidden || !strings.Contains(e.Hint, "limits.private") {
			t.Errorf("%s: %+v", in, e)
		}
	}
	const whole = `{"session":"s","generation":0}`
	if e := env.Request(events.OfTenant(events.SubjectContext, "default"), whole, &events.ContextResponse{}); e == nil || e.Code != events.CodeForbidden {
		t.Errorf("the tenant's whole history: %+v", e)
	}
	if e := env.Request(events.SubjectContext, whole, &events.ContextResponse{}); e != nil {
		t.Errorf("for an operator: %+v", e)
	}
	_, stored := edge.Post("other", "turns", `{"turn":1,"messages":[{"role":"user","content":"text"}]}`)
	for path, status := range map[string]int{
		"/v1/retrieve/" + events.ContentHash(stored.Seq, "text"): 403,
		"/v1/sessions/default/s/context?generation=0":            403,
		"/v1/sessions/default/s/context":                         200,
	} {
		if got, text := edge.Do(workertest.DefaultToken, "GET", path, ""); got != status || (got == 403) != strings.Contains(text, "limits.private") {
			t.Errorf("%s: %d %.200s", path, got, text)
		}
	}
	edge.WriteTokens(workertest.TokenLine(workertest.SessionToken, "default/s session"))
	if err := edge.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	session, err := edge.MCP(workertest.SessionToken, "default", "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "compactd://session/generation/0"}); err == nil || !strings.Contains(err.Error(), "limits.private") {
		t.Errorf("the resource: %v", err)
	}
}

// Hostile actors, secrets in metrics: after good, hostile and compacted sessions no endpoint
// returns a word, a tenant or a session of them.
func TestMetricsNameNoSession(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Summarizer = llm.New()
	env.Config = workertest.NewConfig(t, policy.Default())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "")
	publish := func(kind events.Kind, data string) {
		at := events.Published(kind, events.Address{Tenant: "t-" + workertest.Canary, Session: "s-" + workertest.Canary})
		if _, err := env.JS.Publish(t.Context(), at, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= 20; n++ {
		publish(events.KindTurn, strings.ReplaceAll(string(workertest.Turn(n)), "word", workertest.Canary))
	}
	publish(events.KindTurn, `{"`+workertest.Canary+`"`)
	publish(events.KindCompact, `{"v":1,"id":"`+workertest.Canary+`","focus":"`+workertest.Canary+`"}`)
	env.AwaitDecided()
	workertest.AwaitReadyz(t, m)
	workertest.Until(t, "a summary is counted", func() bool {
		_, body := workertest.Get(t, m, "/metrics", "", "")
		return strings.Contains(body, `summaries_total{by="embedded",`)
	})
	r.Stop()
	var all strings.Builder
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		_, body := workertest.Get(t, m, path, "", "")
		all.WriteString(body)
	}
	if strings.Contains(all.String(), workertest.Canary) {
		t.Errorf("an endpoint returns the canary:\n%s", all.String())
	}
	for _, want := range []string{`rejected_total{code="bad_json"} 1`, `result="compacted"`, `saved_tokens_total{reason=`} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %s: the test shows nothing\n%s", want, all.String())
		}
	}
}
