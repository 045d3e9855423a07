package provider

import (
	"context"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
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

func (o *openAI) complete(ctx context.Context, r model.Request) (model.Reply, error) {
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
		return model.Reply{}, err
	}
	if len(res.Choices) == 0 { // OpenRouter puts refusals here, under status 200
		return model.Reply{}, &model.Error{Kind: model.BadAnswer, Err: errForeign}
	}
	c := res.Choices[0]
	return model.Reply{
		Text: c.Message.Content, Model: res.Model, Finish: openAIFinish(c),
		Usage: events.SummaryUsage{Input: res.Usage.PromptTokens, Output: res.Usage.CompletionTokens},
	}, nil
}

func openAIFinish(c openai.ChatCompletionChoice) model.Finish {
	switch {
	case len(c.Message.ToolCalls) > 0:
		return model.FinishTool
	case c.Message.Refusal != "":
		return model.FinishRefusal
	}
	switch c.FinishReason {
	case "stop":
		return model.FinishStop
	case "length":
		return model.FinishLength
	case "tool_calls", "function_call":
		return model.FinishTool
	case "content_filter":
		return model.FinishRefusal
	default:
		return model.FinishOther
	}
}
