package sdktest

import (
	"cmp"
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
)

// openAI calls through openai-go.
func openAI(c provider.Config, s subject) (asker, error) {
	opts := []option.RequestOption{option.WithBaseURL(c.BaseURL), option.WithMaxRetries(0)}
	if c.Provider == provider.Azure {
		opts = append(opts, option.WithHeader("api-key", string(c.Key)))
	} else {
		opts = append(opts, option.WithAPIKey(string(c.Key)))
	}
	chat := openai.NewChatCompletionService(opts...)
	return func(ctx context.Context, r model.Request) (model.Reply, error) {
		params := openai.ChatCompletionNewParams{Model: c.Model}
		if r.System != "" {
			params.Messages = append(params.Messages, openai.SystemMessage(r.System))
		}
		params.Messages = append(params.Messages, openai.UserMessage(r.User))
		if s.maxTokens {
			params.MaxTokens = openai.Int(r.MaxOutputTokens)
		} else {
			params.MaxCompletionTokens = openai.Int(r.MaxOutputTokens)
		}
		res, err := chat.New(ctx, params)
		if e, ok := errors.AsType[*openai.Error](err); ok {
			return model.Reply{}, &refused{e.StatusCode, cmp.Or(e.Code, e.Type)}
		}
		if err != nil {
			return model.Reply{}, err
		}
		return ofCompletion(res)
	}, nil
}

func ofCompletion(res *openai.ChatCompletion) (model.Reply, error) {
	if len(res.Choices) == 0 {
		return model.Reply{}, errors.New("no choices")
	}
	choice := res.Choices[0]
	r := model.Reply{
		Text: choice.Message.Content, Model: res.Model, Finish: model.FinishOther,
		Usage: events.SummaryUsage{Input: res.Usage.PromptTokens, Output: res.Usage.CompletionTokens},
	}
	switch choice.FinishReason {
	case "stop":
		r.Finish = model.FinishStop
	case "length":
		r.Finish = model.FinishLength
	case "tool_calls", "function_call":
		r.Finish = model.FinishTool
	case "content_filter":
		r.Finish = model.FinishRefusal
	}
	switch {
	case len(choice.Message.ToolCalls) > 0:
		r.Finish = model.FinishTool
	case choice.Message.Refusal != "":
		r.Finish = model.FinishRefusal
	}
	return r, nil
}
