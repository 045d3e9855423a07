package traits

import "testing"

// Who demands reasoning beside calls, under the names that SDKs give it.
func TestDemandsReasoning(t *testing.T) {
	for call, want := range map[[2]string]bool{
		{"deepseek", ""}: true, {"DeepSeek", "deepseek-v4-pro"}: true, {"moonshot-ai", "kimi-k3"}: true, {"kimi", ""}: true,
		{"moonshotai-cn", "kimi-k2.6"}: true, {"openai", "gpt-6"}: false, {"", ""}: false, {"", "kimi-k2-thinking"}: false,

		// Gateways, for these models only; who runs the models itself demands nothing.
		{"openrouter", "moonshotai/kimi-k2-thinking"}: true, {"OpenRouter", "deepseek/deepseek-v4-pro:free"}: true,
		{"opencode-go", "kimi-k2.5"}: true, {"openrouter", "anthropic/claude-opus-5"}: false, {"openrouter", ""}: false,
		{"groq", "moonshotai/kimi-k2-instruct"}: false, {"together", "deepseek-ai/DeepSeek-V3.1"}: false,
	} {
		if DemandsOf("openai", call[0], call[1]).Reasons != want {
			t.Errorf("%q: %t", call, !want)
		}
	}
}
