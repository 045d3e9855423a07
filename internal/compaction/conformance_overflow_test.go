package compaction_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"compactd/internal/events"
	"compactd/internal/overflow"
)

func init() {
	for name, answer := range map[string]func(events.Raw, overflow.Failure) any{
		"isContextOverflowError":       answerOverflow,
		"getContextOverflowProvider":   answerOverflowProvider,
		"parseProviderOverflowDetails": answerOverflowDetails,
		"extractErrorMessage":          answerErrorMessage,
	} {
		answers[name] = func(c *vectorCase) any {
			raw := c.refusal()
			return answer(raw, overflow.Detect(raw, 0))
		}
	}
}

// recordedError is a JavaScript value.
type recordedError struct {
	Kind, Message string
	Value         json.RawMessage
	Cause         *recordedError
}

// raw is the value as an agent sends it: an Error is an object with its message
// and its cause.
func (e *recordedError) raw() json.RawMessage {
	switch e.Kind {
	case "null", "undefined":
		return json.RawMessage("null")
	case "error":
		out := fields{"message": e.Message}
		if e.Cause != nil {
			out["cause"] = e.Cause.raw()
		}
		raw, err := json.Marshal(out)
		if err != nil {
			panic(err)
		}
		return raw
	default:
		return e.Value
	}
}

// refusal is the error of a case.
func (c *vectorCase) refusal() events.Raw {
	var in struct{ Error recordedError }
	c.into(&in)
	return events.Raw(in.Error.raw())
}

func answerOverflow(_ events.Raw, f overflow.Failure) any {
	return fields{"overflow": f.Overflow()}
}

func answerOverflowProvider(_ events.Raw, f overflow.Failure) any {
	if !f.Overflow() || f.Provider == "" {
		return fields{"provider": nil}
	}
	return fields{"provider": f.Provider}
}

func answerOverflowDetails(_ events.Raw, f overflow.Failure) any {
	if f.Actual == 0 || f.Limit == 0 {
		return fields{"details": nil}
	}
	return fields{"details": fields{"actualTokens": f.Actual, "budgetTokens": f.Limit}}
}

func answerErrorMessage(raw events.Raw, _ overflow.Failure) any {
	if m, ok := overflow.Message(raw); ok {
		return fields{"message": m}
	}
	return fields{"message": nil}
}

// overflowWords are what the providers write that the reference takes for another
// or for none.
var overflowWords = map[overflow.Provider][]string{
	overflow.LlamaCpp:   {"available context size"},
	overflow.Mistral:    {"too large for model with"},
	overflow.OpenAI:     {"maximum context length"},
	overflow.OpenRouter: {"endpoint's maximum", "context_length_exceeded"},
}

// namesProvider: an overflow in words of the provider that is named.
func namesProvider(c *vectorCase, _, _ any) string {
	raw := c.refusal()
	f, text := overflow.Detect(raw, 0), strings.ToLower(string(raw))
	if !f.Overflow() || !slices.ContainsFunc(overflowWords[f.Provider], func(w string) bool { return strings.Contains(text, w) }) {
		return "these are not the words of " + string(f.Provider)
	}
	return ""
}

// countsStated: an overflow, and both counts are in its text.
func countsStated(c *vectorCase, _, _ any) string {
	raw := c.refusal()
	f, text := overflow.Detect(raw, 0), strings.ReplaceAll(string(raw), ",", "")
	stated := func(n int64) bool { return n > 0 && strings.Contains(text, strconv.FormatInt(n, 10)) }
	if !f.Overflow() || !stated(int64(f.Actual)) || !stated(int64(f.Limit)) {
		return "the counts are not those of the text"
	}
	return ""
}

// disagrees: what the record takes for an overflow is none, or the reverse.
func disagrees(c *vectorCase, want, _ any) string {
	recorded := at(want, "overflow") == true || at(want, "provider") != nil
	if overflow.Detect(c.refusal(), 0).Overflow() == recorded {
		return "it is emitted as in the record"
	}
	return ""
}
