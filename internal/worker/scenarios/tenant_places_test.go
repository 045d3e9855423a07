package scenarios_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// slowTexts are texts that take long to redact.
var slowTexts = []string{"password=", "Authorization: Bearer ", "-----end", "otpauth://=", "cookie:", "token is "}

// fillWith publishes turns of a text until a tenant's session has a job in the background.
func fillWith(env *workertest.Env, tenant, session, text string) {
	env.T.Helper()
	text = strings.Repeat(text, 1+900/len(text))
	env.FillFor(tenant, session, events.LaneBackground, func(n int) []byte {
		return fmt.Appendf(nil, `{"v":1,"turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":8000,"max_output_tokens":1000},`+
			`"messages":[{"role":"user","content":%q},{"role":"assistant","content":"ok"}]}`, n, text)
	})
}

// Hostile actors: jobs of a tenant whose texts take very long to redact fill only its share of
// the slots, and the summaries of another tenant are made. When they end, its waiting jobs are
// done too (P21).
func TestSlowTextsStopNoOtherTenant(t *testing.T) {
	t.Parallel()
	const hostile, sessions, others = "hostile", 5, 3
	release := make(chan struct{})
	env := workertest.Summarizing(t, workertest.SummarizerFunc(func(ctx context.Context, in summarize.Input) (*events.Summary, error) {
		if in.Tenant == hostile {
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return extract.New().Summarize(ctx, in)
	}))
	started, done := make(chan observe.SummaryStarted, 1024), make(chan observe.SummaryDone, 1024)
	stop := env.Run("a", observe.Listener{
		SummaryStarted: func(s observe.SummaryStarted) {
			if s.Address.Tenant == hostile && s.Lane == events.LaneBackground {
				started <- s
			}
		},
		SummaryDone: func(d observe.SummaryDone) {
			if d.Lane == events.LaneBackground {
				done <- d
			}
		},
	})
	for n := range sessions {
		fillWith(env, hostile, fmt.Sprintf("h%d", n), slowTexts[n%len(slowTexts)])
	}
	share := 0
	for ; share < 2; share++ {
		workertest.Next(t, started, "job of the hostile tenant")
	}
	summarized := 0
	for n := range others {
		fillWith(env, "default", fmt.Sprintf("s%d", n), "lorem ipsum ")
		if d := workertest.Next(t, done, "summary of the other tenant"); d.Address.Tenant == hostile || d.Failure != "" {
			t.Fatalf("%+v", d)
		}
		summarized++
	}
	share += len(started)
	close(release)
	ended := map[string]bool{}
	for len(ended) < sessions {
		if d := workertest.Next(t, done, "summary of the hostile tenant"); d.Address.Tenant == hostile {
			ended[d.Address.Session] = true
		}
	}
	stop()
	if share != 2 || summarized != others {
		t.Errorf("%d slots of the lane, %d summaries of another tenant", share, summarized)
	}
	figures.Print(t, "P21", "hostile_jobs", sessions, "slots_taken", share, "others", others, "others_stopped", others-summarized, "unfinished", sessions-len(ended))
}

// A partition whose processors are taken decides a large event without one, soon: the events of
// others wait behind it.
func TestPartitionGoesOn(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	l := env.Limit(limit.Config{})
	env.Run("a", observe.Listener{})
	release, err := l.Hold(t.Context(), limit.Processor, limit.Account{Tenant: "other"}, int64(runtime.GOMAXPROCS(0)))
	if err != nil {
		t.Fatal(err)
	}
	env.Publish(events.KindTurn, "s1", workertest.BigTurn(1, 1_000_000, 200_000))
	env.AwaitDecided()
	release()
}

// Tenants that wait for a model that is slow leave others their places.
func TestAttachBesideSlowModel(t *testing.T) {
	t.Parallel()
	fake := summarizetest.Start(t, func(summarizetest.Prompt) string { return "" })
	fake.Script(summarizetest.Hang)
	m, err := provider.New(fake.Config(summarizetest.OpenAI))
	if err != nil {
		t.Fatal(err)
	}
	env := workertest.New(t, t.TempDir())
	env.Summarizer = llm.New(m)
	e, l := env.RunLimitedEdge(0)
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine(workertest.AcmeToken, "acme agent") + workertest.TokenLine(workertest.OperatorToken, "* operator"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	slow := `{"summary_ms":60000,"provider":"openai","model":"gpt-4","attachments":[` + workertest.Attachment("a.go", 60_000) + "," + workertest.Attachment("b.go", 60_000) + `]}`
	for range 20 {
		for token, tenant := range map[string]string{workertest.AcmeToken: "acme", workertest.DefaultToken: "default"} {
			e.Open(fmt.Sprintf("POST /v1/sessions/%s/s/attach HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", tenant, token, len(slow), slow))
		}
	}
	l.Await(t, func() bool { return l.Held(limit.Models) >= 2 })
	for i := range 5 {
		if status, text := e.Do(workertest.OperatorToken, "POST", "/v1/sessions/third/s/attach", `{"attachments":[`+workertest.Attachment("a.go", 100)+`]}`); status != 200 {
			t.Errorf("attach %d of a third tenant: %d %s", i, status, text)
		}
	}
}
