package traits

import "testing"

// F5: how many images and documents providers take, wherever a model is served.
func TestMediaOf(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		window          int64
		want            Media
	}{
		{"anthropic", "claude-haiku-4-5", 200_000, Media{Total: 100, Many: 20, Side: 2000}},
		{"anthropic", "claude-opus-5-5", 1_000_000, Media{Total: 600, Many: 20, Side: 2000}},
		{"openrouter", "anthropic/claude-opus-5.5", 1_000_000, Media{Total: 600, Many: 20, Side: 2000}},
		{"anthropic", "", 200_000, Media{Total: 100, Many: 20, Side: 2000}},
		{"amazon-bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000, Media{Total: 100, Documents: 5, Many: 20, Side: 2000}},
		{"bedrock", "amazon.nova-pro-v1:0", 300_000, Media{Documents: 5}},
		{"openai", "gpt-6", 400_000, Media{Total: 500}},
		{"azure", "gpt-5", 400_000, Media{Total: 500}},
		{"google-ai", "gemini-3-pro", 1_000_000, Media{Total: 900}},
		{"vertex", "gemini-2.5-flash", 1_000_000, Media{Total: 3000}},
		{"groq", "llama-4", 128_000, Media{}},
		{"", "", 128_000, Media{}},
	} {
		if got := MediaOf(c.provider, c.model, c.window); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.provider, c.model, got, c.want)
		}
	}
}
