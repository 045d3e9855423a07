package traits

import "testing"

// Who demands reasoning beside calls, under the names that SDKs give it.
func TestDemandsReasoning(t *testing.T) {
	for provider, want := range map[string]bool{"deepseek": true, "DeepSeek": true, "moonshot-ai": true, "kimi": true, "openai": false, "": false} {
		if DemandsReasoning(provider) != want {
			t.Errorf("%q: %t", provider, !want)
		}
	}
}
