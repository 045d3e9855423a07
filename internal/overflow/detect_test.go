package overflow

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/overflow/overflowtest"
)

// D2, D3: words that are not the provider's, and numbers that are not counts.
//
//	detect [status=<HTTP status>]
//	<the error: a JSON value, or text>
func TestDetect(t *testing.T) {
	for _, file := range []string{"testdata/quoted.txt", "testdata/numbers.txt"} {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			var status int64
			if d.HasArg("status") {
				d.ScanArgs(t, "status", &status)
			}
			return describe(Detect(rawOf(d.Input), status))
		})
	}
}

// D5: what is no overflow is refused with a code, and the text names the class
// and quotes nothing.
func TestRefuse(t *testing.T) {
	for class, info := range classes {
		err := Failure{Class: class, Provider: "canary"}.Refuse()
		if info.overflow {
			if err != nil {
				t.Errorf("%s: %v", class, err)
			}
			continue
		}
		bad, ok := errors.AsType[*events.Invalid](err)
		want := events.CodeNotOverflow
		if class == ClassThinking {
			want = events.CodeBoundThinking
		}
		if !ok || bad.Code() != want {
			t.Errorf("%s: %v", class, err)
			continue
		}
		if text := bad.Error(); !strings.Contains(text, "error is "+string(class)) || strings.Contains(text, "canary") {
			t.Errorf("%s: %s", class, text)
		}
	}
	if err := (Failure{}).Refuse(); events.CodeOf(err) != events.CodeNotOverflow {
		t.Errorf("the zero failure: %v", err)
	}
}

// The classes are a closed set, each either an overflow or with advice.
func TestClasses(t *testing.T) {
	for class, info := range classes {
		if info.overflow == (info.advice != "") {
			t.Errorf("%s: overflow is %t, advice %q", class, info.overflow, info.advice)
		}
	}
	for _, rules := range [][]compiled{long, overflows, outputs, others, quoting, last} {
		for _, r := range rules {
			if _, ok := classes[r.class]; !ok {
				t.Errorf("%q has class %q, which does not exist", r.words, r.class)
			}
		}
	}
}

// Every rule for an overflow is met by an error of the corpus or by a test: a
// rule that an earlier one always hides would never be used.
func TestNoRuleIsHidden(t *testing.T) {
	hidden := map[string]bool{}
	for _, r := range slices.Concat(long, overflows, outputs) {
		hidden[r.words] = true
	}
	for _, text := range allTexts(t) {
		words := collect(rawOf(text)).text()
		for _, rules := range [][]compiled{long, outputs, overflows} {
			if r, _ := find(rules, words); r != nil {
				delete(hidden, r.words)
			}
		}
	}
	for words := range hidden {
		t.Errorf("no text of testdata or of the list above meets %q first", words)
	}
}

// general are texts for the general rules, which have no source of their own: the
// patterns of the reference document, and plain words.
var general = []string{
	"exceeds the maximum number of tokens (180000 > 100000)",
	"content is too long",
	"Request payload size exceeds the limit: 20971520 bytes.",
	"ValidationException: too many input tokens",
	"ValidationException: the token count is above what is allowed",
	"the input exceeds the model's maximum",
	"content_length_exceeded: request body too big",
	"the request exceeds the available context size, try increasing it",
	`{"error":{"code":500,"type":"exceed_context_size_error"}}`,
	"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
	"the number of tokens to keep from the initial prompt is greater than the context length",
	`{"error":{"code":"context_length_exceeded","message":"too long"}}`,
	"context length exceeded: prompt has 40000 tokens",
	"above the maximum number of tokens",
	"model_context_window_exceeded",
	`{"error":{"code":"model_max_prompt_tokens_exceeded"}}`,
	"too many tokens",
	"Please reduce the length of the prompt",
	"maximum request body size is 1 MB",
	"ContextWindowExceededError",
	"Too many images in the request: the maximum is 50",
}

// largeOutputs are texts for the rules of outputs, which have no source of their own.
var largeOutputs = []string{
	"Range of max_tokens should be [1, 8192]",
	"Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 200000 instead.",
	"max_tokens must be at most 8192",
	"max_completion_tokens (20000) must not exceed 16384",
}

// D2: a maximum output that is too large is no overflow, and its limit is that of outputs.
func TestLargeOutputs(t *testing.T) {
	for _, text := range largeOutputs {
		if f := Detect(rawOf(text), 400); f.Class != ClassOutput || f.Limit == 0 || f.Actual != 0 {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

func allTexts(t *testing.T) []string {
	t.Helper()
	texts := slices.Concat([]string{"ValidationException: the pagination token exceeds the maximum length"}, general, largeOutputs)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			texts = append(texts, d.Input)
			return d.Expected
		})
	})
	return texts
}

// D1: the general rules, which the reference document has, are overflows.
func TestGeneralWords(t *testing.T) {
	for _, text := range general {
		if f := Detect(rawOf(text), 400); !f.Overflow() {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

// D1, D3: words of no known provider are understood in any order, with their counts, and a
// sentence about the output is not.
func TestAnyWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1_000, 2_000_000).Draw(t, "limit")
		actual := limit + rapid.Int64Range(1, 1_000_000).Draw(t, "above")
		sep := rapid.SampledFrom([]string{"", ","}).Draw(t, "separator")
		a, l := grouped(actual, sep), grouped(limit, sep)
		text := rapid.SampledFrom([]string{
			"The input token limit of {l} tokens was exceeded: your messages have {a} tokens.",
			"Input token limit exceeded: limit is {l}, got {a}.",
			"Your request of {a} tokens exceeds the input token limit of {l}.",
			"The number of input tokens ({a}) is above the limit ({l}).",
			"Token limit for the input reached: {a} tokens were sent, maximum {l}.",
			"The model allows an input of up to {l} tokens. However, your messages resulted in {a} tokens, which is over the limit.",
			"Maximum context length is {l} tokens. However, your messages have {a} tokens.",
			"ValidationException: the limit of {l} input tokens was exceeded, {a} tokens were given",
			"ValidationException: {a} tokens in the prompt, the maximum is {l}",
			"The conversation has {a} tokens, more than the context window of {l} tokens allows.",
			"Error in response stream: number of input_tokens ({a}) is larger than max_input_tokens ({l})",
			"upstream error: 400: input_tokens={a} tokens exceed the limit of {l} tokens",
			"Prompt length {a} exceeds the maximum length of {l}",
			"The prompt of {a} tokens does not fit into a context window of {l} tokens",
			"Context length of {l} tokens reached: the messages have {a} tokens.",
			"Maximum number of prompt tokens exceeded ({a} / {l})",
			"history too long for this model: {a} tokens, the context window is {l}",
		}).Draw(t, "text")
		text = strings.NewReplacer("{a}", a, "{l}", l).Replace(text)
		f := Detect(rawOf(text), 400)
		if !f.Overflow() {
			t.Fatalf("%s: %+v", text, f)
		}
		if int64(f.Actual) != actual || int64(f.Limit) != limit {
			t.Fatalf("%s: %+v", text, f)
		}
	})
	// Of China's gateways: github.com/openclaw/openclaw/blob/4a32bc6d/src/agents/embedded-agent-helpers/context-overflow.ts
	// and github.com/NousResearch/hermes-agent/blob/0003295a/agent/error_classifier.py.
	for _, text := range []string{
		"上下文过长", "上下文超出限制", "上下文长度超过模型限制", "超出最大上下文", "输入内容超过最大长度", "token数量超过上限",
		"请求失败：输入长度超过限制", "对话过长，请压缩上下文", "prompt长度超限",
	} {
		if f := Detect(rawOf(text), 400); f.Class != ClassInput {
			t.Errorf("%s: %+v", text, f)
		}
	}
	for _, text := range []string{
		"The output token limit was exceeded: the response has more than 4096 tokens.",
		"ValidationException: the pagination token exceeds the maximum length",
		"The request was rejected because your account has reached its limit of projects.",
		"The OAuth token has expired; the maximum age was exceeded.",
		"The stop sequence exceeds the maximum length.",
		"The request URI exceeds the maximum length.",
		"Request Header Or Cookie Too Large",
		"The message name exceeds the maximum length of 64 characters.",
		"messages.3.name: exceeds the maximum length",
		"Invalid 'input[3].call_id': string too long.",
		"The image in the prompt exceeds the maximum of 8000 pixels.",
		"max_tokens must be greater than thinking.budget_tokens.",
		"thinking.budget_tokens: Input should be greater than or equal to 1024",
		"The number of requests in progress exceeds the limit of this account.",
		"The audio input is longer than the maximum length of 30 minutes.",
		"Too many tools: the request has 150, the maximum is 128.",
		"max_output_tokens must be at most 8192",
		"Your session token is too long; the maximum length is 4096.",
		"The model generated more tokens than the limit allows.",
		"该账户的请求频率超过限制，请稍后再试",
		"图片大小超过限制",
		"余额不足，请充值",
	} {
		if f := Detect(rawOf(text), 400); f.Overflow() {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

// D3: however the numbers are written, they are read as they are meant.
func TestCountsAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(minLimit, events.MaxTokens).Draw(t, "n")
		sep := rapid.SampledFrom([]string{"", ",", ".", "_", "'", " ", "\u00a0", "\u202f"}).Draw(t, "separator")
		f := Detect(stringOf("prompt is too long: "+grouped(n, sep)+" tokens > "+grouped(n, "")+" maximum"), 400)
		if want := (Failure{ClassInput, "anthropic", measure.Tokens(n), measure.Tokens(n), 0}); f != want {
			t.Errorf("%+v, want %+v", f, want)
		}
	})
}

// grouped writes n with a separator between groups of three digits.
func grouped(n int64, sep string) string {
	s := ""
	for ; n >= 1000; n /= 1000 {
		s = sep + string([]byte{byte('0' + n/100%10), byte('0' + n/10%10), byte('0' + n%10)}) + s
	}
	return string([]byte(itoa(n))) + s
}

func itoa(n int64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// The error in a long text is at its beginning, as in a body, or at its
// end, as in a trace of calls.
func TestLongTexts(t *testing.T) {
	frames := strings.Repeat("  File \"/app/x.py\", line 7, in f\n", MaxText/20)
	const words = "prompt is too long: 300000 tokens > 200000 maximum"
	want := Failure{ClassInput, "anthropic", 300_000, 200_000, 0}
	for _, text := range []string{words + "\n" + frames, "Traceback:\n" + frames + words} {
		if d := cmp.Diff(want, Detect(stringOf(text), 0)); d != "" {
			t.Error(d)
		}
	}
}

// hostile are errors that are deep, wide or long, and ones whose words nearly match
// again and again.
func hostile() map[string]codec.Raw {
	nested := `"prompt is too long"`
	for len(nested) < events.MaxOverflowBytes/2 {
		nested = `{"error":` + string(stringOf(nested)) + `}`
	}
	return map[string]codec.Raw{
		"deep":    codec.Raw(strings.Repeat(`{"error":`, 150) + `"prompt is too long"` + strings.Repeat("}", 150)),
		"bodies":  codec.Raw(nested),
		"wide":    codec.Raw(`[` + strings.Repeat(`{"message":"x"},`, 10_000) + `{}]`),
		"long":    stringOf(strings.Repeat("maximum context length is 1 ", 9000)),
		"digits":  stringOf("prompt is too long: " + strings.Repeat("1,111", 50_000)),
		"parens":  stringOf("maximum context length is 5 tokens. However, you requested 6 tokens (" + strings.Repeat("7 ", 100_000)),
		"braces":  stringOf(strings.Repeat("{", 200_000) + strings.Repeat("}", 50_000)),
		"unicode": stringOf(strings.Repeat("\u2019\U0001f600", 40_000)),
	}
}

// Whatever comes, only so much of it meets the rules, which take linear time; the
// benchmark below states how long that is.
func TestHostileErrors(t *testing.T) {
	for name, raw := range hostile() {
		if n := len(collect(raw).text()); n > MaxText+1 {
			t.Errorf("%s: %d bytes meet the rules", name, n)
		}
		if f := Detect(raw, 0); classes[f.Class] == (classInfo{}) {
			t.Errorf("%s: class %q", name, f.Class)
		}
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, raw := range hostile() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Detect(raw, 0)
			}
		})
	}
}

// The same error is the same failure, and no input breaks a bound.
func FuzzDetect(f *testing.F) {
	for _, text := range general {
		f.Add([]byte(text), int64(400))
	}
	f.Add([]byte(`{"error":{"message":"prompt is too long: 5 tokens > 4","cause":{"message":"x"}}}`), int64(0))
	f.Add([]byte(`"400 {\"error\":{\"message\":\"input length and `+"`max_tokens`"+` exceed context limit: 1 + 2 > 2\"}}"`), int64(0))
	f.Add([]byte(`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`), int64(429))
	f.Fuzz(func(t *testing.T, data []byte, status int64) {
		for _, raw := range []codec.Raw{data, stringOf(strings.ToValidUTF8(string(data), "?"))} {
			got := Detect(raw, status)
			if d := cmp.Diff(got, Detect(raw, status)); d != "" {
				t.Error(d)
			}
			if _, ok := classes[got.Class]; !ok {
				t.Errorf("class %q", got.Class)
			}
			for _, n := range []measure.Tokens{got.Actual, got.Limit, got.Output} {
				if n < 0 || n > events.MaxTokens {
					t.Errorf("%+v has a count out of bounds", got)
				}
			}
			if status == 429 && got.Overflow() && !long[0].re().MatchString(collect(raw).text()) {
				t.Errorf("429 is %+v", got)
			}
			if (got.Refuse() == nil) != got.Overflow() {
				t.Errorf("%+v is refused: %v", got, got.Refuse())
			}
			if m, ok := overflowtest.Message(raw); ok == (m == "") {
				t.Errorf("message %q, %t", m, ok)
			}
		}
	})
}

func BenchmarkDetect(b *testing.B) {
	raw := codec.Raw(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 219898 tokens > 200000 maximum"}}`)
	for b.Loop() {
		if !Detect(raw, 400).Overflow() {
			b.Fatal("wrong")
		}
	}
}
