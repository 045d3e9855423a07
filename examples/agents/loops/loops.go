// Package loops has loops of agents that know nothing of compactd: each holds its whole history in
// the objects of an SDK, and sends it with each call. The HTTP client that they get fits it into
// the window of the model.
//
//	fitter := client.NewFitter(client.FitterConfig{Worker: &client.HTTP{URL: url, Token: token}})
//	t := &transport.Transport{Fitter: fitter, Session: "chat-42"}
//	history, err := loops.Chat(ctx, openai.NewClient(option.WithHTTPClient(&http.Client{Transport: t})), "gpt-4o", 60)
package loops

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

const task = "Read each file, and list the defects in it."

// result is what a tool returns.
func result(step int) string { return strings.Repeat(fmt.Sprintf("line %d of it. ", step), 200) }

// Chat makes steps with chat completions, and returns its history.
func Chat(ctx context.Context, c openai.Client, model string, steps int) ([]openai.ChatCompletionMessageParamUnion, error) {
	history := []openai.ChatCompletionMessageParamUnion{openai.UserMessage(task)}
	for i := range steps {
		answer, err := c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: model, Messages: history})
		if err != nil {
			return history, err
		}
		message := answer.Choices[0].Message
		history = append(history, message.ToParam())
		for _, call := range message.ToolCalls {
			history = append(history, openai.ToolMessage(result(i), call.ID))
		}
	}
	return history, nil
}

// Responses makes steps with the Responses API, which keeps nothing of them.
func Responses(ctx context.Context, c openai.Client, model string, steps int) (responses.ResponseInputParam, error) {
	history := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(task, responses.EasyInputMessageRoleUser)}
	for i := range steps {
		answer, err := c.Responses.New(ctx, responses.ResponseNewParams{
			Model: model, Input: responses.ResponseNewParamsInputUnion{OfInputItemList: history}, Store: openai.Bool(false),
			Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		})
		if err != nil {
			return history, err
		}
		for _, item := range answer.Output {
			history = append(history, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
		}
		for _, item := range answer.Output {
			if item.Type == "function_call" {
				output := responses.ResponseInputItemParamOfFunctionCallOutput(result(i))
				output.OfFunctionCallOutput.CallID = openai.String(item.CallID)
				history = append(history, output)
			}
		}
	}
	return history, nil
}

// Messages makes steps with Anthropic's messages.
func Messages(ctx context.Context, c anthropic.Client, model string, steps int) ([]anthropic.MessageParam, error) {
	history := []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(task))}
	for i := range steps {
		answer, err := c.Messages.New(ctx, anthropic.MessageNewParams{Model: model, MaxTokens: 1024, Messages: history})
		if err != nil {
			return history, err
		}
		var results []anthropic.ContentBlockParamUnion
		for _, block := range answer.Content {
			if block.Type == "tool_use" {
				results = append(results, anthropic.NewToolResultBlock(block.ID, result(i), false))
			}
		}
		history = append(history, answer.ToParam(), anthropic.NewUserMessage(results...))
	}
	return history, nil
}
