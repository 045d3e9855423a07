package model

import (
	"context"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"compactd/internal/events"
)

// openAI speaks chat completions, which most of the world does.
type openAI struct {
	chat      openai.ChatCompletionService
	model     string
	maxTokens bool
}

// newOpenAI makes the service alone: the SDK's client would read its environment.
func newOpenAI(c Config, p preset) (completer, error) {
	opts := []option.RequestOption{
		option.WithBaseURL(c.BaseURL),
		option.WithHTTPClient(newHTTPClient(c, p)),
		option.WithMaxRetries(0),
	}
	switch {
	case c.Key == "":
	case c.Provider == Azure:
		opts = append(opts, option.WithHeader("api-key", string(c.Key)))
	default:
		opts = append(opts, option.WithAPIKey(string(c.Key)))
	}
	return &openAI{chat: openai.NewChatCompletionService(opts...), model: c.Model, maxTokens: p.maxTokens}, nil
}

func (o *openAI) complete(ctx context.Context, r Request) (Reply, error) {
	params := openai.ChatCompletionNewParams{Model: o.model}
	if r.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(r.System))
	}
	params.Messages = append(params.Messages, openai.UserMessage(r.User))
	if o.maxTokens {
		params.MaxTokens = openai.Int(r.MaxOutputTokens)
	} else {
		params.MaxCompletionTokens = openai.Int(r.MaxOutputTokens)
	}
	res, err := o.chat.New(ctx, params)
	if err != nil {
		return Reply{}, err
	}
	if len(res.Choices) == 0 { // OpenRouter puts refusals here, under status 200
		return Reply{}, &Error{Kind: BadAnswer, Err: errForeign}
	}
	c := res.Choices[0]
	return Reply{
		Text: c.Message.Content, Model: res.Model, Finish: openAIFinish(c),
		Usage: events.SummaryUsage{Input: res.Usage.PromptTokens, Output: res.Usage.CompletionTokens},
	}, nil
}

func openAIFinish(c openai.ChatCompletionChoice) Finish {
	switch {
	case len(c.Message.ToolCalls) > 0 || c.Message.FunctionCall.Name != "":
		return FinishTool
	case c.Message.Refusal != "":
		return FinishRefusal
	}
	switch c.FinishReason {
	case "stop":
		return FinishStop
	case "length":
		return FinishLength
	case "tool_calls", "function_call":
		return FinishTool
	case "content_filter":
		return FinishRefusal
	default:
		return FinishOther
	}
}
