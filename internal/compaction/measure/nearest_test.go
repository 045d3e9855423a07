package measure

import "testing"

// A8: a model that no table names is a guess, and the nearest known name is named.
func TestUnknownModels(t *testing.T) {
	w := DefaultWindows()
	for _, c := range []struct {
		provider, model string
		want            Tokens
		known           bool
		nearest         string
	}{
		{"openai", "gpt-5", 400_000, true, ""},
		{"anthropic", "claude-opus-4-6", 1_000_000, true, ""},
		{"my-proxy", "anthropic/claude-3-7-sonnet-latest", 200_000, true, ""},
		{"opnai", "gpt-5", 400_000, true, ""},
		{"my-proxy", "gpt-4-0613", 8_192, true, ""}, // its maker has it
		{"litellm", "deepseek/deepseek-chat", 64_000, true, ""},
		{"lm-studio", "deepseek-chat", 8_192, false, "lm-studio"}, // its default is smaller

		{"anthropic", "claude-new-9", 200_000, false, "anthropic"}, // the window of the family
		{"my-proxy", "claude-sonet-4-5", 200_000, false, "anthropic/claude-sonnet-4-5-20250929"},
		{"my-proxy", "gemini-9-ultra", 1_048_576, false, "google-ai"},
		{"google-ai", "gemma-9", 1_048_576, false, "google-ai/gemma-4-31b-it"},

		{"opnai", "gpt-99", 128_000, false, "openai/gpt-5"},
		{"openai", "gpt-99", 128_000, false, "openai/gpt-5"},
		{"my-proxy", "gpt-99", 128_000, false, "openai/gpt-5"},
		{"openai", "gtp-5", 128_000, false, "openai/gpt-5"},
		{"openai", "gpt5-mini", 128_000, false, "openai/gpt-5-mini"},
		{"antropic", "calude-opus-4-6", 128_000, false, "anthropic/claude-opus-4-6"},
		{"", "mistral-7b", 8_000, false, "mistral/open-mistral-7b"},
		{"my-proxy", "mistral-huge", 128_000, false, "mistral/mistral-nemo"},
		{"my-proxy", "qwen99", 128_000, false, "qwen/qwen3-8b"},
		{"acme", "house-model", 128_000, false, ""},
		{"azure", "our-deployment", 128_000, false, "azure"},
		{"", "", 128_000, false, ""},
		{"openai", "", 128_000, false, "openai"},
	} {
		got, known := w.Table().Lookup(c.provider, c.model)
		if got != c.want || known != c.known {
			t.Errorf("Lookup(%q, %q) = %d, %v, want %d, %v", c.provider, c.model, got, known, c.want, c.known)
		}
		if near := w.Table().Nearest(c.provider, c.model); !known && near != c.nearest {
			t.Errorf("Nearest(%q, %q) = %q, want %q", c.provider, c.model, near, c.nearest)
		}
	}
	over, err := w.With(Windows{"acme": {providerDefault: 64_000}})
	if err != nil {
		t.Fatal(err)
	}
	if got, known := over.Table().Lookup("acme", "house-model"); got != 64_000 || !known {
		t.Errorf("a default that the operator set is %d, %v", got, known)
	}
}
