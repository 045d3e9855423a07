package traits

import "testing"

// F4: whose thinking is bound to what precedes it, under the names that providers and gateways
// give their models. A model that may be Anthropic's, and that no table names, may be bound.
func TestThinking(t *testing.T) {
	bound := [][2]string{
		{"anthropic", "claude-fable-5-1"},
		{"anthropic", "claude-fable-5-2"},
		{"anthropic", "claude-mythos-5-1"},
		{"anthropic", "claude-opus-5-5"},
		{"anthropic", "claude-opus-5-5-20260922"},
		{"anthropic", "claude-sonnet-5-5"},
		{"anthropic", "claude-haiku-5-5"},
		{"bedrock", "us.anthropic.claude-opus-5-5-20260922-v1:0"},
		{"amazon-bedrock", "global.anthropic.claude-fable-5-1-v1:0"},
		{"openrouter", "anthropic/claude-opus-5.5"},
		{"openrouter", "anthropic/claude-fable-5.2:thinking"},
		{"Vertex AI", "claude-sonnet-5-5@20260928"},
		{"azure", "Claude-Fable-5.1"},
		{"anthropic", "claude-fable-6"},
		{"anthropic", "claude-opus-6-20270101"},
	}
	unknown := [][2]string{
		{"anthropic", "claude-opus-latest"},
		{"anthropic", "claude-canto-1"},
		{"anthropic", "m"},
		{"Anthropic", ""},
		{"", ""},
		{"anthropic", "fake-1"},
		{"azure", "my-claude"},
		{"litellm", "my-claude"},
		{"litellm", "team/claude-latest"},
		{"vertex", "claude-sonnet@latest"},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6"},
		{"Amazon Bedrock", "arn:aws:bedrock:eu-west-1:123456789012:provisioned-model/x9"},
	}
	free := [][2]string{
		{"anthropic", "claude-fable-5"},
		{"anthropic", "claude-mythos-5"},
		{"anthropic", "claude-mythos-preview"},
		{"anthropic", "claude-opus-5"},
		{"anthropic", "claude-opus-5-20260724"},
		{"anthropic", "claude-opus-4-8"},
		{"anthropic", "claude-sonnet-5"},
		{"anthropic", "claude-sonnet-4-20250514"},
		{"anthropic", "claude-haiku-4-5-20251001"},
		{"anthropic", "claude-3-7-sonnet-20250219"},
		{"anthropic", "claude-3-opus-latest"},
		{"openrouter", "anthropic/claude-3.7-sonnet:thinking"},
		{"bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{"vertex", "claude-opus-4-1@20250805"},
		{"anthropic", "claude-2.1"},
		{"anthropic", "claude-instant-1.2"},
		{"bedrock", "anthropic.claude-v2:1"},
		{"openai", "gpt-6"},
		{"openai", ""},
		{"moonshot", "kimi-k3"},
		{"zai", "glm-5"},
		{"anthropic", "glm-5"},
		{"bedrock", "us.amazon.nova-pro-v1:0"},
		{"litellm", "my-deployment"},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"},
	}
	for binding, list := range map[Binding][][2]string{Binds: bound, MayBind: unknown, Free: free} {
		for _, m := range list {
			if got := Thinking(m[0], m[1]); got != binding {
				t.Errorf("%s %s: %d, want %d", m[0], m[1], got, binding)
			}
		}
	}
}
