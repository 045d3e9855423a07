package provider

import (
	"context"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
)

// openAI speaks chat completions, which most of the world does:
// https://platform.openai.com/docs/api-reference/chat/create, read 2026-11-22;
// the field names are those of openai-go v3.95.0, type ChatCompletionNewParams.
type openAI struct {
	endpoint  *endpoint
	model     string
	maxTokens bool
}

func newOpenAI(c Config, p preset) (completer, error) {
	e := newEndpoint(c, p, "chat/completions")
	switch {
	case c.Key == "":
	case c.Provider == Azure:
		e.header.Set("Api-Key", string(c.Key))
	default:
		e.header.Set("Authorization", "Bearer "+string(c.Key))
	}
	return &openAI{endpoint: e, model: c.Model, maxTokens: p.maxTokens}, nil
}

type (
	chatRequest struct {
		Model               string        `json:"model"`
		Messages            []chatMessage `json:"messages"`
		MaxTokens           int64         `json:"max_tokens,omitzero"`
		MaxCompletionTokens int64         `json:"max_completion_tokens,omitzero"`
	}
	chatMessage struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
)

// chatAnswer has the fields of type ChatCompletion that a summary needs.
type chatAnswer struct {
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   struct {
		Input  tokens `json:"prompt_tokens"`
		Output tokens `json:"completion_tokens"`
	} `json:"usage"`
}

type chatChoice struct {
	FinishReason string `json:"finish_reason"`
	Message      struct {
		Content   chatContent `json:"content"`
		Refusal   string      `json:"refusal"`
		ToolCalls []codec.Raw `json:"tool_calls"`
	} `json:"message"`
}

// chatContent is the text of an answer: a string, or the text among the chunks that
// Mistral's reasoning models return, beside those of thinking
// (https://docs.mistral.ai/inference/conversations/reasoning, read 2026-11-22).
type chatContent string

// UnmarshalJSON implements json.Unmarshaler.
func (c *chatContent) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return codec.UnmarshalLenient(b, (*string)(c))
	}
	var chunks []textBlock
	if err := codec.UnmarshalLenient(b, &chunks); err != nil {
		return err
	}
	var text strings.Builder
	for _, k := range chunks {
		if k.Type == "text" {
			text.WriteString(k.Text)
		}
	}
	*c = chatContent(text.String())
	return nil
}

func (o *openAI) complete(ctx context.Context, r model.Request) (model.Reply, error) {
	request := chatRequest{Model: o.model}
	if r.System != "" {
		request.Messages = append(request.Messages, chatMessage{"system", r.System})
	}
	request.Messages = append(request.Messages, chatMessage{"user", r.User})
	if o.maxTokens {
		request.MaxTokens = r.MaxOutputTokens
	} else {
		request.MaxCompletionTokens = r.MaxOutputTokens
	}
	var answer chatAnswer
	if err := o.endpoint.post(ctx, request, &answer); err != nil {
		return model.Reply{}, err
	}
	usage := events.SummaryUsage{Input: int64(answer.Usage.Input), Output: int64(answer.Usage.Output)}
	if len(answer.Choices) == 0 { // OpenRouter puts refusals here, under status 200
		return model.Reply{Usage: usage}, &model.Error{Kind: model.BadAnswer, Err: errForeign}
	}
	c := answer.Choices[0]
	return model.Reply{
		Text: string(c.Message.Content), Model: answer.Model, Finish: openAIFinish(c),
		Usage: usage,
	}, nil
}

func openAIFinish(c chatChoice) model.Finish {
	switch {
	case len(c.Message.ToolCalls) > 0:
		return model.FinishTool
	case c.Message.Refusal != "":
		return model.FinishRefusal
	}
	return finishOf(openAIFinishes, c.FinishReason)
}

// openAIFinishes are the reasons for which chat completions end.
var openAIFinishes = map[string]model.Finish{
	"stop":       model.FinishStop,
	"length":     model.FinishLength,
	"tool_calls": model.FinishTool, "function_call": model.FinishTool,
	"content_filter": model.FinishRefusal,
}
