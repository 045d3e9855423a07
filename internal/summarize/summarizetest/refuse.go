package summarizetest

import (
	"cmp"
	"net/http"
	"strconv"

	"compactd/internal/events/codec"
)

// refuse answers with what the provider itself sends, and with key and prompt in
// its message, where some providers do quote them.
func (s *Server) refuse(w http.ResponseWriter, m Mode, p Prompt) {
	var status int
	var o object
	switch p.Dialect {
	case OpenAI:
		status, o = openAIRefusal(m, p)
	case Anthropic:
		status, o = anthropicRefusal(m, p)
	default:
		status, o = s.googleRefusal(m, p)
	}
	if m == RateLimited && p.Dialect != Google {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.RetryAfter.Seconds())))
	}
	b, err := codec.Marshal(o)
	if err != nil {
		panic(err)
	}
	send(w, status, b)
}

func quote(p Prompt) string { return " (key " + p.Key + ", prompt " + p.User + ")" }

// Texts: https://platform.openai.com/docs/guides/error-codes, and Azure's filter.
func openAIRefusal(m Mode, p Prompt) (int, object) {
	refusal := func(status int, kind, code, message string) (int, object) {
		return status, object{"error": object{"message": message + quote(p), "type": kind, "param": nil, "code": cmp.Or[any](code, nil)}}
	}
	switch m {
	case RateLimited:
		return refusal(429, "tokens", "rate_limit_exceeded", "Rate limit reached for gpt-test in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 7s.")
	case TooLong:
		return refusal(400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens. Please reduce the length of the messages.")
	case BadKey:
		return refusal(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: "+p.Key+". You can find your API key at https://platform.openai.com/account/api-keys.")
	case NoModel:
		return refusal(404, "invalid_request_error", "model_not_found", "The model `gpt-test` does not exist or you do not have access to it.")
	case PromptRefused:
		return refusal(400, "", "content_filter", "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.")
	default:
		return refusal(500, "server_error", "", "The server had an error while processing your request. Sorry about that!")
	}
}

// Texts: https://platform.claude.com/docs/en/api/errors.
func anthropicRefusal(m Mode, p Prompt) (int, object) {
	refusal := func(status int, kind, message string) (int, object) {
		return status, object{"type": "error", "error": object{"type": kind, "message": message + quote(p)}, "request_id": "req_1"}
	}
	switch m {
	case RateLimited:
		return refusal(429, "rate_limit_error", "This request would exceed your organization's rate limit of 40,000 input tokens per minute.")
	case TooLong:
		return refusal(400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum")
	case BadKey:
		return refusal(401, "authentication_error", "invalid x-api-key")
	case NoModel:
		return refusal(404, "not_found_error", "model: claude-test")
	case PromptRefused:
		return refusal(400, "invalid_request_error", "Output blocked by content filtering policy")
	default:
		return refusal(500, "api_error", "Internal server error")
	}
}

// Texts: https://ai.google.dev/gemini-api/docs/troubleshooting. The wait is in the
// body, as a google.rpc.RetryInfo; there is no header.
func (s *Server) googleRefusal(m Mode, p Prompt) (int, object) {
	refusal := func(code int, status, message string, details ...object) (int, object) {
		return code, object{"error": object{"code": code, "message": message + quote(p), "status": status, "details": details}}
	}
	switch m {
	case RateLimited:
		return refusal(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details.",
			object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": strconv.Itoa(int(s.RetryAfter.Seconds())) + "s"})
	case TooLong:
		return refusal(400, "INVALID_ARGUMENT", "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).")
	case BadKey:
		return refusal(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
			object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"})
	case NoModel:
		return refusal(404, "NOT_FOUND", "models/gemini-test is not found for API version v1beta, or is not supported for generateContent.")
	default:
		return refusal(500, "INTERNAL", "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting")
	}
}
