package compaction_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"compactd/internal/events"
	"compactd/internal/overflow"
	"compactd/internal/overflow/overflowtest"
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
	if m, ok := overflowtest.Message(raw); ok {
		return fields{"message": m}
	}
	return fields{"message": nil}
}

// lengthWords are in any text about the length of an input: what is too long, and that it is.
var (
	lengthSubjects = regexp.MustCompile(`(?i)token|context|prompt|input|content|message|request|payload|body|length`)
	lengthVerbs    = regexp.MustCompile(`(?i)exceed|too (?:long|large|many|big)|maximum|limit|reduce|larger|longer|greater|overflow|n_ctx`)
)

// speaksOfLength: an overflow in words about a length.
func speaksOfLength(c *vectorCase, _, _ any) string {
	raw := c.refusal()
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

func hasEmptyMessage(c *vectorCase, _, _ any) bool {
	_, found := emptied(parsed(c.refusal()))
	return found
}

// isWithoutEmpty: what is read of the error without its empty messages.
func isWithoutEmpty(c *vectorCase, _, got any) string {
	v, _ := emptied(parsed(c.refusal()))
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return mismatch(plain(answerErrorMessage(raw, overflow.Failure{})), got)
}

// isOutput: input and output are stated, and the output alone leaves no room.
func isOutput(c *vectorCase, _, _ any) bool {
	return overflow.Detect(c.refusal(), 0).Class == overflow.ClassOutput
}

// outputFills: the text states an output of nine tenths of the window or more.
func outputFills(c *vectorCase, _, _ any) string {
	f := overflow.Detect(c.refusal(), 0)
	if f.Limit > 0 && f.Output > 0 && f.Limit-f.Output >= f.Limit/10 {
		return fmt.Sprintf("an output of %d leaves room in %d", f.Output, f.Limit)
	}
	return ""
}

// lacksDigits: the record has a count that is no number.
func lacksDigits(_ *vectorCase, want, _ any) bool {
	d, ok := at(want, "details").(map[string]any)
	return ok && (d["actualTokens"] == nil || d["budgetTokens"] == nil)
}

// countsHaveDigits: no count, or those of the text.
func countsHaveDigits(c *vectorCase, _, got any) string {
	text := strings.ReplaceAll(string(c.refusal()), ",", "")
	for _, name := range []string{"actualTokens", "budgetTokens"} {
		if n, ok := at(at(got, "details"), name).(float64); ok && !strings.Contains(text, strconv.FormatInt(int64(n), 10)) {
			return fmt.Sprintf("%s is %v", name, n)
		}
	}
	return ""
}

// isOtherFailure: neither an overflow nor unknown.
func isOtherFailure(c *vectorCase, _, _ any) bool {
	f := overflow.Detect(c.refusal(), 0)
	return !f.Overflow() && f.Class != overflow.ClassUnknown
}

// statesOddLimit: the record has counts that are none of a window.
func statesOddLimit(_ *vectorCase, want, _ any) bool {
	actual, _ := at(at(want, "details"), "actualTokens").(float64)
	limit, ok := at(at(want, "details"), "budgetTokens").(float64)
	return ok && (limit < 64 || max(actual, limit) > events.MaxTokens)
}

func statesNothing(_ *vectorCase, _, got any) string {
	if at(got, "details") != nil {
		return "it states counts"
	}
	return ""
}

// causeOf is the message of the cause of an error that is an object, "" without.
func causeOf(c *vectorCase) string {
	message, _ := at(at(parsed(c.refusal()), "cause"), "message").(string)
	return message
}

func hasCause(c *vectorCase, _, _ any) bool { return causeOf(c) != "" }

// addsCause: the recorded message, and that of the cause behind it.
func addsCause(c *vectorCase, want, got any) string {
	recorded, _ := at(want, "message").(string)
	if ours, _ := at(got, "message").(string); ours != strings.TrimSpace(recorded+" "+causeOf(c)) {
		return fmt.Sprintf("the message is %q", ours)
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
