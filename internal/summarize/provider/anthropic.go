package provider

import (
	"context"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// claude speaks Anthropic's messages.
type claude struct {
	messages anthropic.MessageService
	model    string
}

func newAnthropic(c Config, p preset) (completer, error) {
	return newClaude(c, p, option.WithAPIKey(string(c.Key))), nil
}

// newClaude makes the service alone: the SDK's client would read its environment
// and its configuration files. Spans are off, since they can be told, by the
// environment too, to carry prompts.
func newClaude(c Config, p preset, access option.RequestOption) *claude {
	return &claude{model: c.Model, messages: anthropic.NewMessageService(
		option.WithHTTPClient(newHTTPClient(c, p)),
		option.WithMaxRetries(0),
		option.WithoutOpenTelemetry(),
		// Without it the SDK guesses one, and refuses what it thinks is too long.
		option.WithRequestTimeout(c.AttemptTimeout),
		access, // of a cloud, wraps the HTTP client and sets a base URL
		option.WithBaseURL(c.BaseURL),
	)}
}

func (a *claude) complete(ctx context.Context, r model.Request) (model.Reply, error) {
	params := anthropic.MessageNewParams{
		Model:     a.model,
		MaxTokens: r.MaxOutputTokens,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(r.User))},
	}
	if r.System != "" {
		params.System = []anthropic.TextBlockParam{{Text: r.System}}
	}
	res, err := a.messages.New(ctx, params)
	if err != nil {
		return model.Reply{}, err
	}
	u := res.Usage
	reply := model.Reply{Model: res.Model, Finish: claudeFinish(res.StopReason)}
	reply.Usage = events.SummaryUsage{Input: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, Output: u.OutputTokens}
	var text strings.Builder
	for _, b := range res.Content {
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

func claudeFinish(s anthropic.StopReason) model.Finish {
	switch s {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence:
		return model.FinishStop
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return model.FinishLength
	case anthropic.StopReasonToolUse:
		return model.FinishTool
	case anthropic.StopReasonRefusal:
		return model.FinishRefusal
	default:
		return model.FinishOther
	}
}
