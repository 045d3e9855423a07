package measure_test

import (
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// The wants of this file are recorded answers of the reference system: of the
// release that its document describes, but for reserves and windows.

func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		provider, text string
		want           measure.Tokens
	}{
		{"openai", "", 0},
		{"anthropic", "a", 2},
		{"google-ai", "abc", 2},
		{"mistral", "abcde", 3},
		{"ollama", "\t\t\t\t", 2},
		{"huggingface", "The quick brown fox jumps over the lazy dog.", 13},
		{"sagemaker", "日本語のテキスト", 3},
		{"groq", "🚀🚀🚀🚀", 3},
		{"openai", "👨\u200d👩\u200d👧\u200d👦 family", 6},
		{"google-ai", "naïve café", 5},
		{"vertex", strings.Repeat("x", 400), 136},
		{"mistral", strings.Repeat("x", 401), 147},
		{"litellm", strings.Repeat("0", 1000), 288},
		{"anthropic", strings.Repeat("x", 60000), 21218},
	} {
		r := measure.NewRate(measure.Profiles["seed"], c.provider)
		if got := r.Text(int64(codec.Units(c.text))); got != c.want {
			t.Errorf("%s %.20q: %d tokens, want %d", c.provider, c.text, got, c.want)
		}
	}
}

// More images than a message should have still count, each.
func TestImages(t *testing.T) {
	m := dialect.Message{Role: dialect.RoleUser, Parts: make([]dialect.Part, 1<<16+1)}
	for i := range m.Parts {
		m.Parts[i].Kind = dialect.PartImage
	}
	r := measure.NewRate(measure.Profiles["seed"], "openai")
	var sum measure.Tokens
	for _, e := range measure.Measure(m, measure.Entry{}) {
		sum += r.Entry(&e)
	}
	if sum != (1<<16+1)*1024+4 {
		t.Errorf("%d tokens", sum)
	}
}

func TestOutputReserve(t *testing.T) {
	for _, c := range []struct{ window, maxOutput, want measure.Tokens }{
		{0, 0, 0},
		{1, 0, 1},
		{3, 0, 2},
		{10, 0, 4},
		{4096, 0, 1434},
		{16385, 0, 5735},
		{131072, 0, 45876},
		{182857, 0, 64000},
		{182858, 0, 64000},
		{2097152, 0, 64000},
		{182858, 8192, 8192},
		{10, 100, 100},
		{127000, -7, 44450},
	} {
		if got := measure.OutputReserve(c.window, c.maxOutput); got != c.want {
			t.Errorf("window %d, output %d: %d, want %d", c.window, c.maxOutput, got, c.want)
		}
	}
}

func TestWindow(t *testing.T) {
	w := measure.DefaultWindows().Table()
	for _, c := range []struct {
		provider, model string
		want            measure.Tokens
	}{
		{"perplexity", "_default", 127000},
		{"openai", "gpt-5.1-chat-latest", 128000},
		{"vertex", "gemini-2.5-flash", 1048576},
		{"openai", "gpt-4.1-nano", 1047576},
		{"bedrock", "amazon.nova-pro-v1:0", 300000},
		{"together-ai", "Qwen/Qwen2.5-72B-Instruct-Turbo", 32768},
		{"groq", "gemma2-9b-it", 8192},
		{"openai", "gpt-4o-2024-08-06", 128000},
		{"openai", "gpt-4-0613", 8192},
		{"OpenAI", "gpt-4", 8192},
		{"anthropic", "claude-opus-4-6-20260101", 1000000},
		{"groq", "llama-3.3-70b-versatile-x", 131072},
		{"openai", "", 128000},
		{"no-such-provider", "gpt-4", 8192}, // its maker has it
		{"no-such-provider", "no-such-model", 128000},
		{"mistral", "mistral-large-latest", 128000}, // as documented: the smaller of the two
	} {
		if got := w.Window(c.provider, c.model); got != c.want {
			t.Errorf("%s/%s: %d, want %d", c.provider, c.model, got, c.want)
		}
	}
}
