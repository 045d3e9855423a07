package model

import (
	"context"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"compactd/internal/events"
)

// claude speaks Anthropic's messages.
type claude struct {
	messages anthropic.MessageService
	model    string
}

// newAnthropic makes the service alone: the SDK's client would read its
// environment and its configuration files. Spans are off, since they can be told,
// by the environment too, to carry prompts.
func newAnthropic(c Config, p preset) (completer, error) {
	opts := []option.RequestOption{
		option.WithBaseURL(c.BaseURL),
		option.WithHTTPClient(newHTTPClient(c, p)),
		option.WithMaxRetries(0),
		option.WithAPIKey(string(c.Key)),
		option.WithoutOpenTelemetry(),
		// Without it the SDK guesses one, and refuses what it thinks is too long.
		option.WithRequestTimeout(c.AttemptTimeout),
	}
	return &claude{messages: anthropic.NewMessageService(opts...), model: c.Model}, nil
}

func (a *claude) complete(ctx context.Context, r Request) (Reply, error) {
	params := anthropic.MessageNewParams{
		Model:     anthropic.Model(a.model),
		MaxTokens: r.MaxOutputTokens,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(r.User))},
	}
	if r.System != "" {
		params.System = []anthropic.TextBlockParam{{Text: r.System}}
	}
	res, err := a.messages.New(ctx, params)
	if err != nil {
		return Reply{}, err
	}
	u := res.Usage
	reply := Reply{Model: string(res.Model), Finish: claudeFinish(res.StopReason)}
	reply.Usage = events.SummaryUsage{Input: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, Output: u.OutputTokens}
	var text strings.Builder
	for _, b := range res.Content {
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_use", "server_tool_use":
			reply.Finish = FinishTool
		}
	}
	reply.Text = text.String()
	return reply, nil
}

func claudeFinish(s anthropic.StopReason) Finish {
	switch s {
	case anthropic.StopReasonEndTurn, anthropic.StopReasonStopSequence:
		return FinishStop
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return FinishLength
	case anthropic.StopReasonToolUse:
		return FinishTool
	case anthropic.StopReasonRefusal:
		return FinishRefusal
	default:
		return FinishOther
	}
}
