// Package loops has loops of agents that know nothing of compactd: each holds its whole history in
// the objects of an SDK, and sends it with each call. The HTTP client that they get fits it into
// the window of the model.
//
//	fitter := client.NewFitter(client.FitterConfig{Worker: &client.HTTP{URL: url, Token: token}})
//	t := &transport.Transport{Fitter: fitter, Session: "chat-42"}
//	history, err := loops.Chat(ctx, openai.NewClient(option.WithHTTPClient(&http.Client{Transport: t})), loops.Task{Model: "gpt-4o", Steps: 60})
package loops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// Task is what an agent does.
type Task struct {
	Model  string
	Steps  int
	Image  string // in base64, a PNG that goes with the prompt; "" for none
	Stream bool   // the answers are streams
}

const prompt = "Read each file, and list the defects in it."

// result is what a tool returns: at each fifteenth step something large.
func result(step, use int) string {
	lines := 200
	if step%15 == 14 && use == 0 {
		lines = 1600
	}
	return strings.Repeat(fmt.Sprintf("line %d of it. ", step), lines)
}

// Chat makes steps with chat completions, and returns its history.
func Chat(ctx context.Context, c openai.Client, t Task) ([]openai.ChatCompletionMessageParamUnion, error) {
	parts := []openai.ChatCompletionContentPartUnionParam{openai.TextContentPart(prompt)}
	if t.Image != "" {
		parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + t.Image}))
	}
	history := []openai.ChatCompletionMessageParamUnion{openai.UserMessage(parts)}
	for i := range t.Steps {
		message, err := t.chat(ctx, c, openai.ChatCompletionNewParams{Model: t.Model, Messages: history})
		if err != nil {
			return history, err
		}
		history = append(history, message.ToParam())
		for k, call := range message.ToolCalls {
			history = append(history, openai.ToolMessage(result(i, k), call.ID))
		}
	}
	return history, nil
}

func (t *Task) chat(ctx context.Context, c openai.Client, params openai.ChatCompletionNewParams) (openai.ChatCompletionMessage, error) {
	if !t.Stream {
		answer, err := c.Chat.Completions.New(ctx, params)
		if err != nil {
			return openai.ChatCompletionMessage{}, err
		}
		return answer.Choices[0].Message, nil
	}
	stream := c.Chat.Completions.NewStreaming(ctx, params)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		return openai.ChatCompletionMessage{}, err
	}
	return all.Choices[0].Message, nil
}

// Responses makes steps with the Responses API, which keeps nothing of them.
func Responses(ctx context.Context, c openai.Client, t Task) (responses.ResponseInputParam, error) {
	content := responses.ResponseInputMessageContentListParam{responses.ResponseInputContentParamOfInputText(prompt)}
	if t.Image != "" {
		image := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
		image.OfInputImage.ImageURL = openai.String("data:image/png;base64," + t.Image)
		content = append(content, image)
	}
	history := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser)}
	for i := range t.Steps {
		answer, err := t.respond(ctx, c, responses.ResponseNewParams{
			Model: t.Model, Input: responses.ResponseNewParamsInputUnion{OfInputItemList: history}, Store: openai.Bool(false),
			Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		})
		if err != nil {
			return history, err
		}
		for _, item := range answer.Output {
			history = append(history, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
		}
		uses := 0
		for _, item := range answer.Output {
			if item.Type == "function_call" {
				output := responses.ResponseInputItemParamOfFunctionCallOutput(result(i, uses))
				output.OfFunctionCallOutput.CallID = openai.String(item.CallID)
				history = append(history, output)
				uses++
			}
		}
	}
	return history, nil
}

func (t *Task) respond(ctx context.Context, c openai.Client, params responses.ResponseNewParams) (*responses.Response, error) {
	if !t.Stream {
		return c.Responses.New(ctx, params)
	}
	stream := c.Responses.NewStreaming(ctx, params)
	for stream.Next() {
		if event := stream.Current(); event.Type == "response.completed" {
			return &event.Response, stream.Close()
		}
	}
	return nil, errors.Join(stream.Err(), errors.New("the stream ended early"))
}

// Messages makes steps with Anthropic's messages.
func Messages(ctx context.Context, c anthropic.Client, t Task) ([]anthropic.MessageParam, error) {
	content := []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(prompt)}
	if t.Image != "" {
		content = append(content, anthropic.NewImageBlockBase64("image/png", t.Image))
	}
	history := []anthropic.MessageParam{anthropic.NewUserMessage(content...)}
	for i := range t.Steps {
		breakpoint(history)
		answer, err := t.message(ctx, c, anthropic.MessageNewParams{Model: t.Model, MaxTokens: 1024, Messages: history})
		if err != nil {
			return history, err
		}
		var results []anthropic.ContentBlockParamUnion
		for _, block := range answer.Content {
			if block.Type == "tool_use" {
				results = append(results, anthropic.NewToolResultBlock(block.ID, result(i, len(results)), false))
			}
		}
		history = append(history, answer.ToParam(), anthropic.NewUserMessage(results...))
	}
	return history, nil
}

// breakpoint puts the cache of the provider behind the newest message, where it was behind an older one.
func breakpoint(history []anthropic.MessageParam) {
	for i, m := range history {
		block := &m.Content[len(m.Content)-1]
		if control := block.GetCacheControl(); control != nil {
			*control = anthropic.CacheControlEphemeralParam{}
			if i == len(history)-1 {
				*control = anthropic.NewCacheControlEphemeralParam()
			}
		}
	}
}

func (t *Task) message(ctx context.Context, c anthropic.Client, params anthropic.MessageNewParams) (*anthropic.Message, error) {
	if !t.Stream {
		return c.Messages.New(ctx, params)
	}
	stream := c.Messages.NewStreaming(ctx, params)
	all := &anthropic.Message{}
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			return nil, err
		}
	}
	return all, stream.Err()
}

// Eino makes steps with a chat model of eino.
func Eino(ctx context.Context, m model.BaseChatModel, t Task) ([]*schema.Message, error) {
	first := schema.UserMessage(prompt)
	if t.Image != "" {
		first = &schema.Message{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{
			{Type: schema.ChatMessagePartTypeText, Text: prompt},
			{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{
				MessagePartCommon: schema.MessagePartCommon{Base64Data: &t.Image, MIMEType: "image/png"},
			}},
		}}
	}
	history := []*schema.Message{first}
	for i := range t.Steps {
		message, err := t.generate(ctx, m, history)
		if err != nil {
			return history, err
		}
		history = append(history, message)
		for k, call := range message.ToolCalls {
			history = append(history, schema.ToolMessage(result(i, k), call.ID))
		}
	}
	return history, nil
}

func (t *Task) generate(ctx context.Context, m model.BaseChatModel, history []*schema.Message) (*schema.Message, error) {
	if !t.Stream {
		return m.Generate(ctx, history)
	}
	stream, err := m.Stream(ctx, history)
	if err != nil {
		return nil, err
	}
	return schema.ConcatMessageStream(stream)
}
