package models

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A2, A8: a provider has one name, whatever SDKs, gateways and people write.
func TestProvider(t *testing.T) {
	for spelling, want := range map[string]string{
		"anthropic": "anthropic", "Anthropic": "anthropic", "anthropic.messages": "anthropic", "claude": "anthropic",
		"bedrock": "bedrock", "amazon-bedrock": "bedrock", "Amazon Bedrock": "bedrock", "aws.bedrock": "bedrock", "bedrock_converse": "bedrock",
		"vertex": "vertex", "vertex_ai": "vertex", "Vertex AI": "vertex", "vertexai": "vertex", "google-vertex": "vertex", "google.vertex.chat": "vertex",
		"gcp.vertex_ai": "vertex", "vertex_ai_beta": "vertex", "google-vertex-anthropic": "vertex", "vertex.anthropic.messages": "vertex",
		"google": "google-ai", "Google AI Studio": "google-ai", "google.generative-ai": "google-ai", "gemini": "google-ai", "google-ai": "google-ai",
		"azure": "azure", "azure-openai": "azure", "azure-openai.chat": "azure", "azure.ai.openai": "azure", "azure_ai": "azure", "Microsoft Foundry": "azure",
		"openai": "openai", "openai.chat": "openai", "openai.responses": "openai", "OpenAI": "openai",
		"openrouter": "openrouter", "openrouter/anthropic": "openrouter", "OpenRouter": "openrouter",
		"mistral.chat": "mistral", "mistral_ai": "mistral", "together_ai": "together-ai", "fireworks_ai": "fireworks", "xai.chat": "xai", "x-ai": "xai",
		"lm studio": "lm-studio", "nvidia_nim": "nvidia-nim", "Hugging Face": "huggingface", "groq": "groq", "Perplexity AI": "perplexity",

		// OpenTelemetry, gen_ai.provider.name: opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai
		"azure.ai.inference": "azure", "gcp.gemini": "google-ai", "gcp.gen_ai": "google-ai", "ibm.watsonx.ai": "watsonx",
		"mistral_ai.chat": "mistral", "x_ai": "xai", "cohere": "cohere", "deepseek": "deepseek", "moonshot_ai": "moonshot",

		// LiteLLM, custom_llm_provider: docs.litellm.ai/docs/providers
		"azure_text": "azure", "bedrock_mantle": "bedrock", "sagemaker_chat": "sagemaker", "vertex_ai-anthropic_models": "vertex",
		"vertex_ai-language-models": "vertex", "codestral": "mistral", "cohere_chat": "cohere", "ollama_chat": "ollama",
		"hosted_vllm": "vllm", "lm_studio": "lm-studio", "watsonx_text": "watsonx", "litellm_proxy": "litellm", "github_copilot": "github-copilot",
		"text-completion-openai": "openai", "anthropic_text": "anthropic", "dashscope": "qwen", "moonshot": "moonshot", "zai": "zhipu",

		// AI SDK, model.provider: ai-sdk.dev/providers
		"azure.chat": "azure", "azure.responses": "azure", "anthropic.messages.v2": "anthropic", "groq.chat": "groq", "togetherai.chat": "together-ai",
		"fireworks.chat": "fireworks", "deepseek.chat": "deepseek", "cohere.chat": "cohere", "openrouter.chat": "openrouter",
		"moonshotai.chat": "moonshot", "alibaba.chat": "qwen", "cerebras.chat": "cerebras", "google.vertex.anthropic.messages": "vertex",

		// models.dev and pi: github.com/anomalyco/models.dev, github.com/earendil-works/pi
		"azure-cognitive-services": "azure", "moonshotai-cn": "moonshot", "zai-coding-plan": "zhipu", "zhipuai": "zhipu", "ollama-cloud": "ollama",
		"nvidia": "nvidia-nim", "cloudflare-ai-gateway": "cloudflare", "alibaba-cn": "qwen", "kimi-for-coding": "moonshot",
		"openai-codex": "openai", "azure-openai-responses": "azure", "google-gemini-cli": "google-ai", "google-antigravity": "google-ai",
		"lmstudio": "lm-studio", "xiaomi": "xiaomi", "minimax-cn": "minimax", "opencode-go": "opencode", "opencode": "opencode",

		// LangChain, ls_provider: github.com/langchain-ai/langchain
		"google_genai": "google-ai", "google_vertexai": "vertex", "google_anthropic_vertex": "vertex", "amazon_bedrock": "bedrock",
		"anthropic_bedrock": "bedrock", "azure_openai": "azure", "mistralai": "mistral", "nvidia-ai-endpoints": "nvidia-nim",
		"ChatAnthropic": "anthropic", "ChatVertexAI": "vertex",

		"My Own": "myown", "acme.chat": "acmechat", "": "", "...": "",
	} {
		if got := Provider(spelling); got != want {
			t.Errorf("Provider(%q) = %q, want %q", spelling, got, want)
		}
	}
}

// The name of a provider is its own name, in any spelling of it.
func TestProviderIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom([]string{"anthropic", "bedrock", "google-ai", "vertex", "azure", "together-ai"}), rapid.StringMatching(`[a-z]{1,8}`)).Draw(t, "name")
		var b strings.Builder
		for _, c := range name {
			b.WriteString(rapid.SampledFrom([]string{"", "", "", "-", "_", " "}).Draw(t, "sign"))
			if rapid.Bool().Draw(t, "upper") {
				c = []rune(strings.ToUpper(string(c)))[0]
			}
			b.WriteRune(c)
		}
		want := Provider(name)
		if got := Provider(b.String()); got != want || Provider(want) != want {
			t.Fatalf("Provider(%q) = %q, want %q", b.String(), got, want)
		}
	})
}

// A8: a model has one maker and one name.
func TestMaker(t *testing.T) {
	for _, test := range []struct{ model, maker, name string }{
		{"claude-opus-4-5-20251101", "anthropic", "claude-opus-4-5-20251101"},
		{"anthropic/claude-opus-4.5", "anthropic", "claude-opus-4-5"},
		{"anthropic/claude-3.7-sonnet:thinking", "anthropic", "claude-3-7-sonnet:thinking"},
		{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic", "claude-sonnet-4-5-20250929-v1:0"},
		{"arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1:0", "anthropic", "claude-opus-4-6-v1:0"},
		{"claude-opus-4-5@20251101", "anthropic", "claude-opus-4-5@20251101"},
		{"publishers/anthropic/models/Claude-Haiku-4-5", "anthropic", "claude-haiku-4-5"},
		{"openai/gpt-5", "openai", "gpt-5"},
		{"openai/gpt-4.1-mini", "openai", "gpt-4.1-mini"},
		{"openai/gpt-oss-120b:free", "openai", "gpt-oss-120b:free"},
		{"openai/o3", "openai", "o3"},
		{"o4-mini", "openai", "o4-mini"},
		{"solo3", "", "solo3"},
		{"phi-o31", "", "phi-o31"},
		{"models/gemini-3-pro-preview", "google-ai", "gemini-3-pro-preview"},
		{"google/gemini-2.5-pro", "google-ai", "gemini-2.5-pro"},
		{"mistralai/devstral-2512", "mistral", "devstral-2512"},
		{"x-ai/grok-4", "xai", "grok-4"},
		{"deepseek-ai/deepseek-r1-distill-llama-70b", "deepseek", "deepseek-r1-distill-llama-70b"},
		{"meta-llama/Llama-3.3-70B-Instruct", "meta", "llama-3.3-70b-instruct"},
		{"amazon.nova-pro-v1:0", "amazon", "nova-pro-v1:0"},
		{"my-deployment", "", "my-deployment"},
		{"Supernova", "", "Supernova"},
		{"", "", ""},
	} {
		if maker, name := Maker(test.model), Canonical(test.model); maker != test.maker || name != test.name {
			t.Errorf("%q is %s of %q, want %s of %q", test.model, name, maker, test.name, test.maker)
		}
	}
}
