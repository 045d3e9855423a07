package loops_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	claude "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"compactd/client"
	"compactd/client/transport"
	"compactd/examples/agents/loops"
	"compactd/examples/agenttest"
	"compactd/internal/events"
)

const steps = 60

// loop runs an agent on an SDK.
type loop func(ctx context.Context, sdk *http.Client, url, model string) error

func chat(ctx context.Context, sdk *http.Client, url, model string) error {
	c := openai.NewClient(option.WithHTTPClient(sdk), option.WithBaseURL(url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	_, err := loops.Chat(ctx, c, model, steps)
	return err
}

func responses(ctx context.Context, sdk *http.Client, url, model string) error {
	c := openai.NewClient(option.WithHTTPClient(sdk), option.WithBaseURL(url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	_, err := loops.Responses(ctx, c, model, steps)
	return err
}

func messages(ctx context.Context, sdk *http.Client, url, model string) error {
	c := anthropic.NewClient(claude.WithHTTPClient(sdk), claude.WithBaseURL(url), claude.WithAPIKey("none"), claude.WithMaxRetries(0))
	_, err := loops.Messages(ctx, c, model, steps)
	return err
}

// recorder counts the messages that an SDK sends otherwise than in the call before.
type recorder struct {
	to      http.RoundTripper
	last    []json.RawMessage
	changed int
}

func (r *recorder) RoundTrip(in *http.Request) (*http.Response, error) {
	body, err := in.GetBody()
	if err != nil {
		return nil, err
	}
	var sent struct{ Messages, Input []json.RawMessage }
	if err := json.NewDecoder(body).Decode(&sent); err != nil {
		return nil, err
	}
	history := slices.Concat(sent.Messages, sent.Input)
	for i, m := range r.last {
		if !bytes.Equal(m, history[i]) {
			r.changed++
		}
	}
	r.last = history
	return r.to.RoundTrip(in)
}

// absent is a worker that does not answer the requests 20 to 40.
type absent struct {
	client.Worker
	requests atomic.Int64
}

func (a *absent) Sync(ctx context.Context, session string, in client.Sync) (*client.Synced, error) {
	if n := a.requests.Add(1); n >= 20 && n < 40 {
		return nil, &client.Error{Code: client.CodeUnavailable}
	}
	return a.Worker.Sync(ctx, session, in)
}

// Agents on the SDKs for Go make 60 steps against a provider that validates each request, in a
// window of 16,384 tokens; once more with a window that is stated too large, so that calls are
// refused as too long; and without a worker for a third of the steps. No refusal reaches an agent,
// and its objects stay as they were.
func TestLoops(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "%x default agent\n", sha256.Sum256([]byte("a-token"))), 0o600); err != nil {
		t.Fatal(err)
	}
	_, addr := agenttest.WithEdge(t, tokens)
	for _, c := range []struct {
		name, model string
		format      events.Format
		run         loop
	}{
		{"openai-go/chat", "gpt-4", events.OpenAI, chat},
		{"openai-go/responses", "gpt-5", events.Responses, responses},
		{"anthropic-sdk-go", "claude-opus-5-5", events.Anthropic, messages},
	} {
		for _, run := range []struct {
			name   string
			window int64
		}{{"known", agenttest.StrictWindow}, {"refused", 3 * agenttest.StrictWindow}, {"away", agenttest.StrictWindow}} {
			t.Run(c.name+"/"+run.name, func(t *testing.T) {
				t.Parallel()
				var worker client.Worker = &client.HTTP{URL: "http://" + addr, Token: "a-token"}
				if run.name == "away" {
					worker = &absent{Worker: worker}
				}
				p := &agenttest.Strict{Format: c.format, Model: c.model}
				server := httptest.NewServer(p)
				defer server.Close()
				compactions, cuts := 0, 0
				fitter := client.NewFitter(client.FitterConfig{
					Worker: worker, Wait: time.Minute, RetryAfter: time.Nanosecond,
					OnCompacted: func(string, *client.Synced) { compactions++ },
					OnProblem: func(n client.Note) {
						if n.Code == client.CodeCut {
							cuts++
						} else if run.name != "away" {
							t.Errorf("%s: %s", n.Code, n.Message)
						}
					},
				})
				model := client.Model{ContextWindow: run.window, MaxOutputTokens: agenttest.StrictOutput}
				own := &recorder{to: &transport.Transport{Fitter: fitter, Session: t.Name(), Config: client.Config{Model: model}}}
				if err := c.run(t.Context(), &http.Client{Transport: own}, server.URL, c.model); err != nil {
					t.Error(err)
				}
				r := p.Result()
				refusals := len(r.Refused) - r.TooLong
				fmt.Printf("client %s/%s steps=%d compactions=%d overflows=%d refusals=%d changed=%d\n",
					c.name, run.name, r.Calls-r.TooLong, compactions, r.TooLong, refusals, own.changed)
				if r.Calls-r.TooLong != steps || compactions == 0 || refusals > 0 || own.changed > 0 || (r.TooLong > 0) != (run.name == "refused") || (cuts > 0) != (run.name == "away") {
					t.Errorf("refused: %v", r.Refused)
				}
			})
		}
	}
}
