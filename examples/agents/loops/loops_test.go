package loops_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	claude "github.com/anthropics/anthropic-sdk-go/option"
	eino "github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"compactd/client"
	"compactd/client/transport"
	"compactd/examples/agents/loops"
	"compactd/examples/agenttest"
	"compactd/internal/events"
)

// loop runs an agent on an SDK.
type loop func(ctx context.Context, sdk *http.Client, url string, t loops.Task) error

func chat(ctx context.Context, sdk *http.Client, url string, t loops.Task) error {
	c := openai.NewClient(option.WithHTTPClient(sdk), option.WithBaseURL(url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	_, err := loops.Chat(ctx, c, t)
	return err
}

func responses(ctx context.Context, sdk *http.Client, url string, t loops.Task) error {
	c := openai.NewClient(option.WithHTTPClient(sdk), option.WithBaseURL(url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	_, err := loops.Responses(ctx, c, t)
	return err
}

func messages(ctx context.Context, sdk *http.Client, url string, t loops.Task) error {
	c := anthropic.NewClient(claude.WithHTTPClient(sdk), claude.WithBaseURL(url), claude.WithAPIKey("none"), claude.WithMaxRetries(0))
	_, err := loops.Messages(ctx, c, t)
	return err
}

func einoChat(ctx context.Context, sdk *http.Client, url string, t loops.Task) error {
	m, err := eino.NewChatModel(ctx, &eino.ChatModelConfig{HTTPClient: sdk, BaseURL: url + "/v1", APIKey: "none", Model: t.Model})
	if err == nil {
		_, err = loops.Eino(ctx, m, t)
	}
	return err
}

// Agents on the SDKs for Go make 60 steps against a provider that validates each request, in a
// window of 16,384 tokens: with streams, an image, parallel calls and large results; with a window
// that is stated too large, so that calls are refused as too long; and without a worker for a third
// of the steps. No refusal reaches an agent, and its objects stay as they were.
func TestLoops(t *testing.T) {
	const steps = 60
	worker := agenttest.HTTP(t)
	for _, c := range []struct {
		name, module, model string
		format              events.Format
		run                 loop
	}{
		{"openai-go/chat", "github.com/openai/openai-go/v3", "gpt-4", events.OpenAI, chat},
		{"openai-go/responses", "github.com/openai/openai-go/v3", "gpt-5", events.Responses, responses},
		{"anthropic-sdk-go", "github.com/anthropics/anthropic-sdk-go", "claude-opus-5-5", events.Anthropic, messages},
		{"eino", "github.com/cloudwego/eino", "gpt-4", events.OpenAI, einoChat},
	} {
		for _, run := range []struct {
			name   string
			window int64
			uses   int // of tools in an answer
			task   loops.Task
		}{
			{"mixed", agenttest.StrictWindow, 3, loops.Task{Image: picture(t), Stream: true}},
			{"refused", 3 * agenttest.StrictWindow, 1, loops.Task{}},
			{"away", agenttest.StrictWindow, 2, loops.Task{Stream: true}},
		} {
			t.Run(c.name+"/"+run.name, func(t *testing.T) {
				t.Parallel()
				p := &agenttest.Strict{Format: c.format, Model: c.model, Uses: run.uses}
				server := httptest.NewServer(p)
				defer server.Close()
				m := &measure{worker: worker, absent: run.name == "away"}
				fitter := client.NewFitter(client.FitterConfig{
					Worker: m, Wait: time.Minute, RetryAfter: time.Nanosecond, OnCompacted: m.onCompacted,
					OnProblem: func(n client.Note) {
						if m.onProblem(n); run.name != "away" {
							t.Errorf("%s: %s", n.Code, n.Message)
						}
					},
				})
				model := client.Model{ContextWindow: run.window, MaxOutputTokens: agenttest.StrictOutput}
				fit := &transport.Transport{Fitter: fitter, Session: t.Name(), Config: client.Config{Model: model}, Base: (*provider)(m)}
				run.task.Model, run.task.Steps = c.model, steps
				if err := c.run(t.Context(), &http.Client{Transport: &agent{measure: m, to: fit}}, server.URL, run.task); err != nil {
					t.Error(err)
				}
				r := p.Result()
				refusals := len(r.Refused) - r.TooLong
				m.print(c.name+"/"+run.name, versionOf(t, c.module), r.Calls-r.TooLong, r.TooLong, refusals)
				if r.Calls-r.TooLong != steps || m.compactions == 0 || refusals > 0 || m.changed > 0 || !m.absent && m.prefixKept() < 0.99 ||
					(r.TooLong > 0) != (run.name == "refused") || (m.cuts > 0) != m.absent {
					t.Errorf("%d calls, %d compactions, %d cuts, refused: %v", r.Calls, m.compactions, m.cuts, r.Refused)
				}
			})
		}
	}
}

// picture is a PNG of 32 times 32 pixels, in base64.
func picture(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 32, 32))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}
