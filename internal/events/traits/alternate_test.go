package traits

import "testing"

// B11: who refuses two messages of one role in a row, under the names that SDKs give it.
func TestAlternates(t *testing.T) {
	for provider, want := range map[string]bool{
		"mistral": true, "Mistral AI": true, "perplexity": true, "vLLM": true, "ollama": true,
		"openai": false, "": false, "azure": false, "deepseek": false,
	} {
		if DemandsOf("openai", provider, "").Alternates != want {
			t.Errorf("%q: %t", provider, !want)
		}
	}
}
