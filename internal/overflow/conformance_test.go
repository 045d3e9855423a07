package overflow_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/overflow"
	"compactd/internal/overflow/overflowtest"
	"compactd/internal/testkit/reference"
)

// Our answers, compared with what the reference system answered (docs/comparison.md).
func TestConformance(t *testing.T) { suite.Run(t) }

var suite = reference.Suite{
	Answers: map[string]func(*reference.Case) any{
		"isContextOverflowError":       answerTo(answerOverflow),
		"getContextOverflowProvider":   answerTo(answerOverflowProvider),
		"parseProviderOverflowDetails": answerTo(answerOverflowDetails),
		"extractErrorMessage":          answerTo(answerErrorMessage),
	},
	Rules: []reference.Rule{
		reference.NewRule("D1", "extractErrorMessage", "an empty message is none", hasEmptyMessage, isWithoutEmpty),
		reference.NewRule("D1", "extractErrorMessage", "a cause is read of any error, also of one that is a plain object", hasCause, addsCause),
		reference.NewRule("D2", "isContextOverflowError", "a maximum output that fills the window is no overflow", isOutput, outputFills),
		reference.NewRule("D2", "getContextOverflowProvider", "a maximum output that fills the window is no overflow", isOutput, outputFills),
		reference.NewRule("D2", "parseProviderOverflowDetails", "a maximum output that fills the window is no overflow", isOutput, outputFills),
		reference.NewRule("D2", "isContextOverflowError", "rate limits, quotas and bad keys are no overflow; input and output together are", isExcused, disagrees),
		reference.NewRule("D2", "getContextOverflowProvider", "rate limits, quotas and bad keys are no overflow; input and output together are", isExcused, disagrees),
		reference.NewRule("D2", "parseProviderOverflowDetails", "what is recognised as another failure has no counts of a window", isOtherFailure, statesNothing),
		reference.NewRule("D1", "isContextOverflowError", "texts of today's providers, and a code without a message, are overflows too", reference.Always, speaksOfLength),
		reference.NewRule("D1", "getContextOverflowProvider", "the provider that writes these words today is named", reference.Always, speaksOfLength),
		reference.NewRule("D3", "parseProviderOverflowDetails", "a count has digits", lacksDigits, countsHaveDigits),
		reference.NewRule("D3", "parseProviderOverflowDetails", "a limit below 64 tokens is no window, and a number beyond 2^40 no count", statesOddLimit, statesNothing),
		reference.NewRule("D3", "parseProviderOverflowDetails", "counts are read in every form and from texts of any length", reference.Always, countsStated),
	},
}

func answerTo(answer func(codec.Raw, overflow.Failure) any) func(*reference.Case) any {
	return func(c *reference.Case) any {
		raw := refusalOf(c)
		return answer(raw, overflow.Detect(raw, 0))
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
		out := reference.Fields{"message": e.Message}
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
func refusalOf(c *reference.Case) codec.Raw {
	var in struct{ Error recordedError }
	c.Into(&in)
	return codec.Raw(in.Error.raw())
}

func answerOverflow(_ codec.Raw, f overflow.Failure) any {
	return reference.Fields{"overflow": f.Overflow()}
}

func answerOverflowProvider(_ codec.Raw, f overflow.Failure) any {
	if !f.Overflow() || f.Provider == "" {
		return reference.Fields{"provider": nil}
	}
	return reference.Fields{"provider": f.Provider}
}

func answerOverflowDetails(_ codec.Raw, f overflow.Failure) any {
	if f.Actual == 0 || f.Limit == 0 {
		return reference.Fields{"details": nil}
	}
	return reference.Fields{"details": reference.Fields{"actualTokens": f.Actual, "budgetTokens": f.Limit}}
}

func answerErrorMessage(raw codec.Raw, _ overflow.Failure) any {
	if m, ok := overflowtest.Message(raw); ok {
		return reference.Fields{"message": m}
	}
	return reference.Fields{"message": nil}
}

// lengthWords are in any text about the length of an input: what is too long, and that it is.
var (
	lengthSubjects = regexp.MustCompile(`(?i)token|context|prompt|input|content|message|request|payload|body|length`)
	lengthVerbs    = regexp.MustCompile(`(?i)exceed|too (?:long|large|many|big)|maximum|limit|reduce|larger|longer|greater|overflow|n_ctx`)
)

// speaksOfLength: an overflow in words about a length.
func speaksOfLength(c *reference.Case, _, _ any) string {
	raw := refusalOf(c)
	if f := overflow.Detect(raw, 0); !f.Overflow() || !lengthSubjects.Match(raw) || !lengthVerbs.Match(raw) {
		return "these are not words about a length"
	}
	return ""
}

// emptied are the members of an error that are messages, without those that are empty.
func emptied(v any) (out any, found bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return v, false
	}
	kept := map[string]any{}
	for name, x := range m {
		is := x
		if name == "error" || name == "cause" {
			var inner bool
			is, inner = emptied(x)
			found = found || inner
		}
		if text, isText := is.(string); isText && text == "" && (name == "message" || name == "error") {
			found = true
			continue
		}
		kept[name] = is
	}
	return kept, found
}

func hasEmptyMessage(c *reference.Case, _, _ any) bool {
	_, found := emptied(reference.Parsed(refusalOf(c)))
	return found
}

// isWithoutEmpty: what is read of the error without its empty messages.
func isWithoutEmpty(c *reference.Case, _, got any) string {
	v, _ := emptied(reference.Parsed(refusalOf(c)))
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return reference.Mismatch(reference.Plain(answerErrorMessage(raw, overflow.Failure{})), got)
}

// isOutput: input and output are stated, and the output alone leaves no room.
func isOutput(c *reference.Case, _, _ any) bool {
	return overflow.Detect(refusalOf(c), 0).Class == overflow.ClassOutput
}

// outputFills: the text states an output of nine tenths of the window or more.
func outputFills(c *reference.Case, _, _ any) string {
	f := overflow.Detect(refusalOf(c), 0)
	if f.Limit > 0 && f.Output > 0 && f.Limit-f.Output >= f.Limit/10 {
		return fmt.Sprintf("an output of %d leaves room in %d", f.Output, f.Limit)
	}
	return ""
}

// lacksDigits: the record has a count that is no number.
func lacksDigits(_ *reference.Case, want, _ any) bool {
	d, ok := reference.At(want, "details").(map[string]any)
	return ok && (d["actualTokens"] == nil || d["budgetTokens"] == nil)
}

// countsHaveDigits: no count, or those of the text.
func countsHaveDigits(c *reference.Case, _, got any) string {
	text := strings.ReplaceAll(string(refusalOf(c)), ",", "")
	for _, name := range []string{"actualTokens", "budgetTokens"} {
		if n, ok := reference.At(reference.At(got, "details"), name).(float64); ok && !strings.Contains(text, strconv.FormatInt(int64(n), 10)) {
			return fmt.Sprintf("%s is %v", name, n)
		}
	}
	return ""
}

// isOtherFailure: neither an overflow nor unknown.
func isOtherFailure(c *reference.Case, _, _ any) bool {
	f := overflow.Detect(refusalOf(c), 0)
	return !f.Overflow() && f.Class != overflow.ClassUnknown
}

// statesOddLimit: the record has counts that are none of a window.
func statesOddLimit(_ *reference.Case, want, _ any) bool {
	actual, _ := reference.At(reference.At(want, "details"), "actualTokens").(float64)
	limit, ok := reference.At(reference.At(want, "details"), "budgetTokens").(float64)
	return ok && (limit < 64 || max(actual, limit) > events.MaxTokens)
}

func statesNothing(_ *reference.Case, _, got any) string {
	if reference.At(got, "details") != nil {
		return "it states counts"
	}
	return ""
}

// causeOf is the message of the cause of an error that is an object, "" without.
func causeOf(c *reference.Case) string {
	message, _ := reference.At(reference.At(reference.Parsed(refusalOf(c)), "cause"), "message").(string)
	return message
}

func hasCause(c *reference.Case, _, _ any) bool { return causeOf(c) != "" }

// addsCause: the recorded message, and that of the cause behind it.
func addsCause(c *reference.Case, want, got any) string {
	recorded, _ := reference.At(want, "message").(string)
	if ours, _ := reference.At(got, "message").(string); ours != strings.TrimSpace(recorded+" "+causeOf(c)) {
		return fmt.Sprintf("the message is %q", ours)
	}
	return ""
}

// countsStated: an overflow, and both counts are in its text.
func countsStated(c *reference.Case, _, _ any) string {
	raw := refusalOf(c)
	f, text := overflow.Detect(raw, 0), strings.ReplaceAll(string(raw), ",", "")
	stated := func(n int64) bool { return n > 0 && strings.Contains(text, strconv.FormatInt(n, 10)) }
	if !f.Overflow() || !stated(int64(f.Actual)) || !stated(int64(f.Limit)) {
		return "the counts are not those of the text"
	}
	return ""
}

func isExcused(c *reference.Case, _, _ any) bool { return c.Excused() }

// disagrees: what the record takes for an overflow is none, or the reverse.
func disagrees(c *reference.Case, want, _ any) string {
	recorded := reference.At(want, "overflow") == true || reference.At(want, "provider") != nil
	if overflow.Detect(refusalOf(c), 0).Overflow() == recorded {
		return "it is emitted as in the record"
	}
	return ""
}

// refused is a record of an error with a text.
func refused(function, text string, want any) *reference.Case {
	return reference.NewCase(function, map[string]any{"error": map[string]any{"kind": "string", "value": text}}, want)
}

type object = map[string]any

// unread is a record of an error with its message.
func unread(failure object, message string) *reference.Case {
	return reference.NewCase("extractErrorMessage", object{"error": failure}, object{"message": message})
}

func details(actual, limit any) any {
	return map[string]any{"details": map[string]any{"actualTokens": actual, "budgetTokens": limit}}
}

// D1, D2, D3: classes of answers that no record of ours has.
func TestOtherRecords(t *testing.T) {
	const output = "This model's maximum context length is 8192 tokens. However, you requested 12000 tokens (4000 in the messages, 8000 in the completion)."
	for _, c := range []*reference.Case{
		refused("parseProviderOverflowDetails", "However, your messages exceed it: 1,048,577 > 1,048,576 350 of them", details(1_048_577, 1_048_576)),
		refused("parseProviderOverflowDetails", "200,001 exceeds 200,000", details(200_001, 200_000)),
		refused("parseProviderOverflowDetails", "However, 200001, exceeds ,200000", details(200_001, 200_000)),
		refused("parseProviderOverflowDetails", "prompt is too long: , tokens > , maximum", details(nil, nil)),
		refused("parseProviderOverflowDetails", "839,979 tokens:,,,", details(839_979, nil)),
		refused("isContextOverflowError", output, map[string]any{"overflow": true}),
		refused("getContextOverflowProvider", output, map[string]any{"provider": "openai"}),
		refused("parseProviderOverflowDetails", output, map[string]any{"details": nil}),
		unread(object{"kind": "error", "message": "", "cause": object{"kind": "error", "message": "prompt is too long"}}, " prompt is too long"),
		unread(object{"kind": "error", "message": ""}, ""),
		unread(object{"kind": "object", "value": object{"message": "", "error": "too many tokens"}}, ""),
		unread(object{"kind": "object", "value": object{"error": object{"message": ""}}}, ""),
	} {
		if v, rule, diff := suite.Compare(c); v == reference.Failed {
			t.Errorf("%s %s: %s %s", c.Function, c.Input, rule, diff)
		}
	}
}
