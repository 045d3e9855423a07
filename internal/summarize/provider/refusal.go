package provider

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
)

// Causes that have no error of their own.
var (
	errPerMinute = errors.New("the bound on calls a minute")
	errForeign   = errors.New("the answer is not what the provider documents")
	errEmpty     = errors.New("the answer has no text")
	errRequest   = errors.New("the request cannot be written")
)

// codeError is a provider's code for a refusal: words of a small alphabet. Its message is left out: it may
// quote the prompt, or the key.
type codeError string

func (e codeError) Error() string { return string(e) }

// fault makes every error of a call a [*model.Error], except a caller's own cancellation. Texts of libraries
// are left out for the same reason as messages.
func fault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case ctx.Err() != nil:
		return &model.Error{Kind: model.Timeout}
	case ok:
		return e
	default:
		return &model.Error{Kind: model.BadAnswer, Err: errForeign}
	}
}

// failure is the [*model.Error] in an error, the zero value for none.
func failure(err error) model.Error {
	if e, ok := errors.AsType[*model.Error](err); ok {
		return *e
	}
	return model.Error{}
}

// refusal reads an answer without success.
func refusal(status int, h http.Header, body []byte) *model.Error {
	var refusal explanation
	var v any
	if codec.UnmarshalLenient(body, &v) == nil {
		refusal.read(v, 0)
	} else {
		refusal.message = strings.ToLower(string(body[:min(len(body), maxMessage)]))
	}
	refusal.code(strings.ToLower(h.Get("X-Amzn-Errortype")))
	e := &model.Error{Kind: refusal.kind(status), Status: status, RetryAfter: refusal.wait(h)}
	switch {
	case status >= 300 && status <= 399:
		e.Err = errRedirect
	case len(refusal.codes) > 0:
		e.Err = codeError(strings.Join(refusal.codes, ", "))
	}
	return e
}

// kind sorts the refusals of all providers by the caller's remedy.
func (e *explanation) kind(status int) model.Kind {
	switch {
	case status == http.StatusTooManyRequests && e.has("insufficient_quota"):
		return model.Auth // no money left: waiting does not help
	case status == http.StatusTooManyRequests:
		return model.RateLimited
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return model.Timeout
	case status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return model.Unavailable
	case status < 400:
		return model.BadAnswer
	case e.has("content_filter", "content_policy_violation", "invalid_prompt"), strings.Contains(e.message, "content filtering policy"):
		return model.Refused
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden,
		e.has("api_key_invalid"), strings.Contains(e.message, "credit balance"): // Google and Anthropic say so with 400
		return model.Auth
	case status == http.StatusRequestEntityTooLarge, e.tooLong():
		return model.TooLong
	default:
		return model.Invalid
	}
}

// tooLongWords are the words of providers for a prompt that does not fit, in lower case.
var tooLongWords = []string{
	"context_length_exceeded", "maximum context length", // OpenAI, Azure, vLLM, OpenRouter, Mistral
	"context window",                             // OpenAI
	"prompt is too long", "exceed context limit", // Anthropic
	"input token count", "exceeds the maximum number of tokens", // Google
	"input is too long",                   // Bedrock
	"context size", "exceed_context_size", // llama.cpp
	"max context length",              // Ollama
	"max_new_tokens` must be",         // Hugging Face
	"string_above_max_length",         // OpenAI, for one message
	"too large for model",             // Mistral
	"reduce the length of",            // Groq, DeepSeek
	"larger than the maximum context", // LiteLLM
}

func (e *explanation) tooLong() bool {
	return slices.ContainsFunc(tooLongWords, func(w string) bool {
		return strings.Contains(e.message, w) || e.has(w)
	})
}

// wait is the pause that the provider requests: in a header or the body.
func (e *explanation) wait(h http.Header) time.Duration {
	return cmp.Or(
		seconds(h.Get("Retry-After-Ms"), time.Millisecond),
		seconds(h.Get("Retry-After"), time.Second),
		until(h.Get("Retry-After")),
		e.retryDelay,
	)
}

// maxRetryAfter keeps sums of times in range. No caller waits as long.
const maxRetryAfter = 24 * time.Hour

func seconds(s string, unit time.Duration) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f <= 0 {
		return 0
	}
	return time.Duration(min(f, float64(maxRetryAfter/unit)) * float64(unit))
}

func until(date string) time.Duration {
	t, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	return min(max(time.Until(t), 0), maxRetryAfter)
}
