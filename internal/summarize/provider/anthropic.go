package provider

import (
	"context"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// anthropicVersion is sent as a header: https://platform.claude.com/docs/en/api/versioning,
// read 2026-11-22.
const anthropicVersion = "2023-06-01"

// claude speaks Anthropic's messages: https://platform.claude.com/docs/en/api/messages,
// read 2026-11-22; the field names are those of anthropic-sdk-go v1.84.0, type
// MessageNewParams. The clouds have the model in the path, and a version in the body.
type claude struct {
	endpoint *endpoint
	model    string // "" for a cloud
	version  string // "" but for a cloud
}

func newAnthropic(c Config, p preset) (completer, error) {
	e := newEndpoint(c, p, "v1/messages")
	e.header.Set("X-Api-Key", string(c.Key))
	e.header.Set("Anthropic-Version", anthropicVersion)
	return &claude{endpoint: e, model: c.Model}, nil
}

type (
	messagesRequest struct {
		AnthropicVersion string          `json:"anthropic_version,omitzero"`
		Model            string          `json:"model,omitzero"`
		MaxTokens        int64           `json:"max_tokens"`
		System           []textBlock     `json:"system,omitzero"`
		Messages         []claudeMessage `json:"messages"`
	}
	claudeMessage struct {
		Role    string      `json:"role"`
		Content []textBlock `json:"content"`
	}
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
)

// messagesAnswer has the fields of type Message that a summary needs. Usage counts
// input that was cached apart.
type messagesAnswer struct {
	Model      string      `json:"model"`
	Content    []textBlock `json:"content"`
	StopReason string      `json:"stop_reason"`
	Usage      struct {
		Input        tokens `json:"input_tokens"`
		CacheCreated tokens `json:"cache_creation_input_tokens"`
		CacheRead    tokens `json:"cache_read_input_tokens"`
		Output       tokens `json:"output_tokens"`
	} `json:"usage"`
}

func (a *claude) complete(ctx context.Context, r model.Request) (model.Reply, error) {
	request := messagesRequest{
		AnthropicVersion: a.version, Model: a.model, MaxTokens: r.MaxOutputTokens,
		Messages: []claudeMessage{{Role: "user", Content: []textBlock{{Type: "text", Text: r.User}}}},
	}
	if r.System != "" {
		request.System = []textBlock{{Type: "text", Text: r.System}}
	}
	var answer messagesAnswer
	if err := a.endpoint.post(ctx, request, &answer); err != nil {
		return model.Reply{}, err
	}
	u := answer.Usage
	reply := model.Reply{Model: answer.Model, Finish: finishOf(claudeFinishes, answer.StopReason)}
	reply.Usage = events.SummaryUsage{Input: int64(u.Input + u.CacheCreated + u.CacheRead), Output: int64(u.Output)}
	var text strings.Builder
	for _, b := range answer.Content {
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_use", "server_tool_use":
			reply.Finish = model.FinishTool
		}
	}
	reply.Text = text.String()
	return reply, nil
}

// claudeFinishes are the reasons for which Claude stops.
var claudeFinishes = map[string]model.Finish{
	"end_turn": model.FinishStop, "stop_sequence": model.FinishStop,
	"max_tokens": model.FinishLength, "model_context_window_exceeded": model.FinishLength,
	"tool_use": model.FinishTool,
	"refusal":  model.FinishRefusal,
}
