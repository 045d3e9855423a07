package measure

import "testing"

// A8: the available input is never above what the provider takes.
func TestInputLimit(t *testing.T) {
	for model, want := range map[string]Tokens{
		"gpt-5": 272_000, "gpt-5-mini-2025-08-07": 272_000, "openai/gpt-5.2-codex": 272_000, "gpt-5.4-pro": 922_000, "gpt-5.4-nano": 272_000,
		"gpt-5.3-codex-spark": 100_000, "openai/gpt-5.5": 922_000, "gpt-6.2-sol": 922_000, "gpt-5.3-chat-latest": 0,
		"gpt-5-chat-latest": 0, "gpt-4o": 0, "claude-opus-4-5": 0, "my-deployment": 0, "": 0,
	} {
		if got := InputLimit(model); got != want {
			t.Errorf("InputLimit(%q) = %d, want %d", model, got, want)
		}
	}
}

// A2: Claude counts as Claude, through whatever gateway.
func TestTokenizer(t *testing.T) {
	p := Profiles["default"]
	claude := NewRate(p, "anthropic")
	for _, provider := range []string{"anthropic", "openrouter", "azure", "Vertex AI", "litellm", ""} {
		if got := NewRate(p, Tokenizer(provider, "anthropic/claude-opus-4.5")); got != claude {
			t.Errorf("%s: %+v", provider, got)
		}
	}
	if got := Tokenizer("openrouter", "openai/gpt-5"); got != "openrouter" {
		t.Errorf("got %s", got)
	}
}

// A8: the models of 2026 have their windows at every provider; what an operator runs with
// settings of his own does not.
func TestWindowsOfModels(t *testing.T) {
	w := DefaultWindows()
	for _, c := range []struct {
		provider, model string
		want            Tokens
	}{
		{"anthropic", "claude-opus-4-7", 1_000_000},
		{"anthropic", "claude-opus-5-5-20261001", 1_000_000},
		{"anthropic", "claude-sonnet-5-5", 1_000_000},
		{"anthropic", "claude-fable-5-1", 1_000_000},
		{"anthropic", "claude-haiku-4-5", 200_000},
		{"anthropic", "claude-haiku-5-5", 1_000_000},
		{"bedrock", "us.anthropic.claude-opus-4-8-v1:0", 1_000_000},
		{"Vertex AI", "claude-sonnet-5@20260630", 1_000_000},
		{"openrouter", "anthropic/claude-opus-4.7", 1_000_000},
		{"openrouter", "anthropic/claude-sonnet-4.5", 200_000},
		{"openrouter", "openai/gpt-6-sol", 1_050_000},
		{"openai", "gpt-5.5-pro", 1_050_000},
		{"openai", "gpt-5.3-codex", 400_000},
		{"openai", "gpt-5.3-codex-spark", 128_000},
		{"azure", "gpt-6-luna", 1_050_000},
		{"google-ai", "gemini-3.5-flash", 1_048_576},
		{"openrouter", "google/gemini-3.1-pro-preview", 1_048_576},
		{"google-ai", "gemini-2.5-flash-image", 32_768},
		{"openrouter", "x-ai/grok-4.3", 1_000_000},
		{"openrouter", "deepseek/deepseek-v4-pro", 1_048_576},
		{"openrouter", "moonshotai/kimi-k2.5", 256_000},
		{"openrouter", "z-ai/glm-4.6", 202_752},
		{"openrouter", "qwen/qwen3-235b-a22b-2507", 262_144},
		{"deepseek", "deepseek-v4-flash", 1_000_000},
		{"ollama", "qwen3.6-27b", 128_000},
		{"my-proxy", "claude-opus-5-5", 1_000_000},
		{"my-proxy", "my-deployment", 128_000},
		{"", "", 128_000},
	} {
		if got := w.Table().Window(c.provider, c.model); got != c.want {
			t.Errorf("Window(%q, %q) = %d, want %d", c.provider, c.model, got, c.want)
		}
	}
	over, err := w.With(Windows{"my-proxy": {"_default": 64_000, "claude-opus-5-5": 300_000}, "openai": {"gpt-6": 500_000}})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]Tokens{"claude-opus-5-5": 300_000, "claude-sonnet-5": 64_000, "x": 64_000, "": 64_000} {
		if got := over.Table().Window("my-proxy", model); got != want {
			t.Errorf("with an override %q has %d, want %d", model, got, want)
		}
	}
	if got := over.Table().Window("openai", "gpt-6-sol"); got != 500_000 {
		t.Errorf("with an override gpt-6-sol has %d", got)
	}
}

// A2: Claude takes 30 % more tokens since Opus 4.7 and Sonnet 5. Profiles without classes
// make no difference.
func TestTokenizerOfFamilies(t *testing.T) {
	size := Meter{}.Text("An estimate is made of the same text for each of the models.")
	rate := func(profile, provider, model string) Tokens {
		return RateOf(Profiles[profile], provider, model).Sized(size) * 100
	}
	old := rate("default", "anthropic", "claude-opus-4-6")
	for model, more := range map[string]Tokens{
		"claude-3-7-sonnet-20250219": 0, "claude-opus-4-20250514": 0, "claude-haiku-4-5": 0, "claude-sonnet-4-6": 0, "claude-opus-4-1": 0,
		"claude-opus-4-7": 30, "claude-opus-4-8": 30, "claude-sonnet-5": 30, "claude-fable-5-1": 30, "claude-haiku-5-5": 30, "claude-opus-5-5": 30, "claude-next": 30,
	} {
		for provider, name := range map[string]string{"anthropic": model, "openrouter": "anthropic/" + model, "bedrock": "us.anthropic." + model + "-v1:0"} {
			want := old + old*more/100
			if got := rate("default", provider, name); got < want-100 || got > want+100 {
				t.Errorf("%s of %s: %d, want %d", name, provider, got, want)
			}
		}
		if seed := rate("seed", "anthropic", model); seed != rate("seed", "anthropic", "claude-opus-4-6") {
			t.Errorf("seed: %s differs", model)
		}
	}
	if a, b := rate("default", "openai", "gpt-6"), rate("default", "openai", "gpt-4o"); a != b {
		t.Errorf("gpt-6 %d, gpt-4o %d", a, b)
	}
}
