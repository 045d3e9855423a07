package sdktest

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/shared"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	openaishared "github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
)

// agree calls both sides, and wants the same reply, or refusals with the same status,
// ours with the code that the SDK reads.
func agree(t *testing.T, w *recorder, s subject, what string) (model.Reply, error) {
	t.Helper()
	r := model.Request{System: "rules", User: "q", MaxOutputTokens: 1_000}
	ours, err := w.ours(t, s)(t.Context(), r)
	theirs, theirErr := w.theirs(t, s)(t.Context(), r)
	if (err == nil) != (theirErr == nil) {
		t.Errorf("%s: %s: ours %v, the SDK's %v", s, what, err, theirErr)
		return ours, err
	}
	if err == nil {
		if d := gocmp.Diff(theirs, ours); d != "" {
			t.Errorf("%s: %s (- SDK + ours)\n%s", s, what, d)
		}
		return ours, nil
	}
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Errorf("%s: %s: %v", s, what, err)
		return ours, err
	}
	their, isRefusal := errors.AsType[*refused](theirErr)
	if !isRefusal {
		if e.Kind != model.BadAnswer {
			t.Errorf("%s: %s: %v, where the SDK cannot read the answer: %v", s, what, err, theirErr)
		}
		return ours, err
	}
	if e.Status != their.status || !strings.Contains(err.Error(), strings.ToLower(their.code)) {
		t.Errorf("%s: %s: ours %v, the SDK's %v", s, what, err, their)
	}
	return ours, err
}

func subjectOf(name provider.Name) subject {
	for _, s := range subjects {
		if s.name == name {
			return s
		}
	}
	panic(name)
}

// Every reason to stop that openai-go documents, with the fields beside it.
func TestCompletions(t *testing.T) {
	w, s := newRecorder(t), subjectOf(provider.OpenAI)
	call := openai.ChatCompletionMessageToolCallUnion{ID: "1", Type: "function", Function: openai.ChatCompletionMessageFunctionToolCallFunction{Name: "bash", Arguments: "{}"}}
	for _, c := range []struct {
		reason  string
		message openai.ChatCompletionMessage
		want    model.Finish
	}{
		{"stop", openai.ChatCompletionMessage{Content: "text"}, model.FinishStop},
		{"length", openai.ChatCompletionMessage{Content: "te"}, model.FinishLength},
		{"content_filter", openai.ChatCompletionMessage{Content: "te"}, model.FinishRefusal},
		{"stop", openai.ChatCompletionMessage{Refusal: "no"}, model.FinishRefusal},
		{"tool_calls", openai.ChatCompletionMessage{ToolCalls: []openai.ChatCompletionMessageToolCallUnion{call}}, model.FinishTool},
		{"stop", openai.ChatCompletionMessage{ToolCalls: []openai.ChatCompletionMessageToolCallUnion{call}}, model.FinishTool},
		{"function_call", openai.ChatCompletionMessage{Content: ""}, model.FinishTool},
		{"of_tomorrow", openai.ChatCompletionMessage{Content: "text"}, model.FinishOther},
	} {
		w.marshals(t, http.StatusOK, openai.ChatCompletion{
			ID: "1", Model: "gpt-4o-2024-11-20", Created: 1, Choices: []openai.ChatCompletionChoice{{FinishReason: c.reason, Message: c.message}},
			Usage: openai.CompletionUsage{
				PromptTokens: 1_234, CompletionTokens: 56, TotalTokens: 1_290,
				PromptTokensDetails: openai.CompletionUsagePromptTokensDetails{CachedTokens: 1_000},
			},
		})
		if r, err := agree(t, w, s, c.reason); err != nil || r.Finish != c.want || r.Usage.Input != 1_234 || r.Model != "gpt-4o-2024-11-20" {
			t.Errorf("%s: %+v, %v, want %s", c.reason, r, err, c.want)
		}
	}
}

// Every reason to stop and every block that anthropic-sdk-go documents for a call
// without tools.
func TestMessages(t *testing.T) {
	w := newRecorder(t)
	text := anthropic.ContentBlockUnion{Type: "text", Text: "text"}
	for _, c := range []struct {
		reason anthropic.StopReason
		blocks []anthropic.ContentBlockUnion
		want   model.Finish
	}{
		{anthropic.StopReasonEndTurn, []anthropic.ContentBlockUnion{text, text}, model.FinishStop},
		{anthropic.StopReasonStopSequence, []anthropic.ContentBlockUnion{text}, model.FinishStop},
		{anthropic.StopReasonMaxTokens, []anthropic.ContentBlockUnion{text}, model.FinishLength},
		{anthropic.StopReasonModelContextWindowExceeded, []anthropic.ContentBlockUnion{text}, model.FinishLength},
		{anthropic.StopReasonRefusal, []anthropic.ContentBlockUnion{text}, model.FinishRefusal},
		{anthropic.StopReasonPauseTurn, []anthropic.ContentBlockUnion{text}, model.FinishOther},
		{anthropic.StopReasonToolUse, []anthropic.ContentBlockUnion{text, {Type: "tool_use", ID: "1", Name: "bash", Input: json.RawMessage(`{}`)}}, model.FinishTool},
		{anthropic.StopReasonEndTurn, []anthropic.ContentBlockUnion{text, {Type: "server_tool_use", ID: "1", Name: "web_search", Input: json.RawMessage(`{}`)}}, model.FinishTool},
		{anthropic.StopReasonEndTurn, []anthropic.ContentBlockUnion{{Type: "thinking", Thinking: "hm", Signature: "s"}, {Type: "redacted_thinking", Data: "x"}, text}, model.FinishStop},
	} {
		w.marshals(t, http.StatusOK, anthropic.Message{
			ID: "1", Model: "claude-haiku-4-5-20251001", Type: "message", Role: "assistant", StopReason: c.reason, Content: c.blocks,
			Usage: anthropic.Usage{InputTokens: 200, CacheCreationInputTokens: 34, CacheReadInputTokens: 1_000, OutputTokens: 56},
		})
		for _, name := range []provider.Name{provider.Anthropic, provider.AnthropicVertex, provider.Bedrock} {
			r, err := agree(t, w, subjectOf(name), string(c.reason))
			if err != nil || r.Finish != c.want || r.Usage.Input != 1_234 || !strings.Contains(r.Text, "text") {
				t.Errorf("%s: %s: %+v, %v, want %s", name, c.reason, r, err, c.want)
			}
		}
	}
}

// Every reason to stop and to block that genai documents.
func TestContents(t *testing.T) {
	w := newRecorder(t)
	for reason, want := range map[genai.FinishReason]model.Finish{
		genai.FinishReasonStop: model.FinishStop, genai.FinishReasonMaxTokens: model.FinishLength,
		genai.FinishReasonSafety: model.FinishRefusal, genai.FinishReasonRecitation: model.FinishRefusal,
		genai.FinishReasonLanguage: model.FinishRefusal, genai.FinishReasonBlocklist: model.FinishRefusal,
		genai.FinishReasonProhibitedContent: model.FinishRefusal, genai.FinishReasonSPII: model.FinishRefusal,
		genai.FinishReasonMalformedFunctionCall: model.FinishTool, genai.FinishReasonUnexpectedToolCall: model.FinishTool,
		genai.FinishReasonTooManyToolCalls: model.FinishTool,
		genai.FinishReasonOther:            model.FinishOther, genai.FinishReasonUnspecified: model.FinishOther,
	} {
		w.marshals(t, http.StatusOK, genai.GenerateContentResponse{
			ModelVersion: "gemini-2.5-flash-001",
			Candidates: []*genai.Candidate{{FinishReason: reason, Content: &genai.Content{Role: "model", Parts: []*genai.Part{
				{Text: "a thought", Thought: true}, {Text: "te"}, {Text: "xt"},
			}}}},
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 1_234, CandidatesTokenCount: 40, ThoughtsTokenCount: 16},
		})
		for _, name := range []provider.Name{provider.Google, provider.Vertex} {
			r, err := agree(t, w, subjectOf(name), string(reason))
			if err != nil || r.Finish != want || r.Text != "text" || r.Usage.Output != 56 || r.Model != "gemini-2.5-flash-001" {
				t.Errorf("%s: %s: %+v, %v, want %s", name, reason, r, err, want)
			}
		}
	}
	for _, reason := range []genai.BlockedReason{
		genai.BlockedReasonSafety, genai.BlockedReasonOther, genai.BlockedReasonBlocklist, genai.BlockedReasonProhibitedContent,
		genai.BlockedReasonImageSafety, genai.BlockedReasonModelArmor, genai.BlockedReasonJailbreak,
	} {
		w.marshals(t, http.StatusOK, genai.GenerateContentResponse{PromptFeedback: &genai.GenerateContentResponsePromptFeedback{BlockReason: reason}})
		if _, err := agree(t, w, subjectOf(provider.Google), string(reason)); kind(err) != model.Refused {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func kind(err error) model.Kind {
	if e, ok := errors.AsType[*model.Error](err); ok {
		return e.Kind
	}
	return ""
}

// Errors as the SDKs' types marshal them.
func TestErrors(t *testing.T) {
	w := newRecorder(t)
	for _, c := range []struct {
		status     int
		code, kind string
		want       model.Kind
	}{
		{400, "context_length_exceeded", "invalid_request_error", model.TooLong},
		{400, "unsupported_parameter", "invalid_request_error", model.Invalid},
		{400, "content_filter", "", model.Refused},
		{401, "invalid_api_key", "invalid_request_error", model.Auth},
		{404, "model_not_found", "invalid_request_error", model.Invalid},
		{429, "rate_limit_exceeded", "tokens", model.RateLimited},
		{429, "insufficient_quota", "insufficient_quota", model.Auth},
		{500, "", "server_error", model.Unavailable},
		{503, "", "service_unavailable", model.Unavailable},
	} {
		w.marshals(t, c.status, map[string]any{"error": openaishared.ErrorObject{Code: c.code, Type: c.kind, Message: "words"}})
		if _, err := agree(t, w, subjectOf(provider.OpenAI), c.code); kind(err) != c.want {
			t.Errorf("openai %d %s: %v, want %s", c.status, cmp.Or(c.code, c.kind), err, c.want)
		}
	}
	for _, c := range []struct {
		status  int
		kind    shared.ErrorType
		message string
		want    model.Kind
	}{
		{400, shared.ErrorTypeInvalidRequestError, "prompt is too long: 213462 tokens > 200000 maximum", model.TooLong},
		{400, shared.ErrorTypeInvalidRequestError, "max_tokens: 1 > 0", model.Invalid},
		{401, shared.ErrorTypeAuthenticationError, "invalid x-api-key", model.Auth},
		{402, shared.ErrorTypeBillingError, "billing", model.Auth},
		{403, shared.ErrorTypePermissionError, "not yours", model.Auth},
		{404, shared.ErrorTypeNotFoundError, "model: x", model.Invalid},
		{429, shared.ErrorTypeRateLimitError, "slower", model.RateLimited},
		{500, shared.ErrorTypeAPIError, "ours", model.Unavailable},
		{504, shared.ErrorTypeTimeoutError, "late", model.Timeout},
		{529, shared.ErrorTypeOverloadedError, "Overloaded", model.Unavailable},
	} {
		w.marshals(t, c.status, shared.ErrorResponse{Type: "error", RequestID: "req_1", Error: shared.ErrorObjectUnion{Type: string(c.kind), Message: c.message}})
		for _, name := range []provider.Name{provider.Anthropic, provider.AnthropicVertex} {
			if _, err := agree(t, w, subjectOf(name), string(c.kind)); kind(err) != c.want {
				t.Errorf("%s %d %s: %v, want %s", name, c.status, c.kind, err, c.want)
			}
		}
	}
	retry := map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
	badKey := map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
	for _, c := range []struct {
		err   genai.APIError
		want  model.Kind
		after time.Duration
	}{
		{genai.APIError{Code: 429, Status: "RESOURCE_EXHAUSTED", Message: "quota", Details: []map[string]any{retry}}, model.RateLimited, 34 * time.Second},
		{genai.APIError{Code: 400, Status: "INVALID_ARGUMENT", Message: "The input token count (9) exceeds the maximum number of tokens allowed (8)."}, model.TooLong, 0},
		{genai.APIError{Code: 400, Status: "INVALID_ARGUMENT", Message: "API key not valid.", Details: []map[string]any{badKey}}, model.Auth, 0},
		{genai.APIError{Code: 403, Status: "PERMISSION_DENIED"}, model.Auth, 0},
		{genai.APIError{Code: 404, Status: "NOT_FOUND"}, model.Invalid, 0},
		{genai.APIError{Code: 503, Status: "UNAVAILABLE"}, model.Unavailable, 0},
		{genai.APIError{Code: 504, Status: "DEADLINE_EXCEEDED"}, model.Timeout, 0},
	} {
		w.marshals(t, c.err.Code, map[string]any{"error": c.err})
		for _, name := range []provider.Name{provider.Google, provider.Vertex} {
			_, err := agree(t, w, subjectOf(name), c.err.Status)
			if e, ok := errors.AsType[*model.Error](err); !ok || e.Kind != c.want || e.RetryAfter != c.after {
				t.Errorf("%s %d %s: %v, want %s", name, c.err.Code, c.err.Status, err, c.want)
			}
		}
	}
}
