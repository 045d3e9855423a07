package models

import "strings"

// spellings are the providers by their one name, with the other names that clients,
// gateways and instrumentations have for them, squeezed as by squeeze.
//
// Source, read 2026-11: opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai,
// docs.litellm.ai/docs/providers, ai-sdk.dev/providers, models.dev, and the ls_provider of
// LangChain's integrations.
var spellings = map[string]string{
	"anthropic":      "claude anthropicai chatanthropic",
	"azure":          "azureopenai azureai azureaiopenai azureaifoundry azurefoundry azureaiinference azurecognitiveservices microsoftfoundry",
	"bedrock":        "amazonbedrock awsbedrock aws bedrockconverse awsbedrockconverse amazonbedrockconverse anthropicbedrock bedrockmantle",
	"cerebras":       "",
	"cloudflare":     "workersai cloudflareworkersai cloudflareaigateway",
	"cohere":         "cohereai",
	"deepseek":       "deepseekai",
	"fireworks":      "fireworksai",
	"github-copilot": "copilot",
	"google-ai":      "google googleai googleaistudio googlegenerativeai googlegenai gemini gcpgemini gcpgenai googlegeminicli googleantigravity",
	"groq":           "",
	"huggingface":    "hf huggingfaceinference",
	"litellm":        "litellmproxy",
	"lm-studio":      "lmstudio",
	"minimax":        "",
	"mistral":        "mistralai codestral",
	"moonshot":       "moonshotai kimi kimiforcoding",
	"nvidia-nim":     "nim nvidia nvidianim nvidiaaiendpoints",
	"ollama":         "ollamacloud",
	"openai":         "openaicodex chatgpt textcompletionopenai",
	"opencode":       "opencodezen opencodego",
	"openrouter":     "openrouterai",
	"perplexity":     "perplexityai",
	"qwen":           "alibaba alibabacloud dashscope aliyun bailian",
	"sagemaker":      "amazonsagemaker awssagemaker",
	"together-ai":    "together togetherai",
	"vertex":         "vertexai vertexaibeta googlevertex googlevertexai gcpvertexai googlevertexanthropic googleanthropicvertex vertexanthropic anthropicvertex vertexaianthropicmodels vertexailanguagemodels chatvertexai",
	"vllm":           "hostedvllm",
	"watsonx":        "watsonxai ibmwatsonxai",
	"xai":            "grok",
	"zhipu":          "zhipuai zai zaicodingplan bigmodel",
}

// manners are what clients put behind a provider for the way in which they call it, or for
// where it is.
var manners = []string{"chat", "text", "responses", "completions", "messages", "cn"}

// names are all spellings and their providers.
var names = func() map[string]string {
	out := map[string]string{}
	for name, others := range spellings {
		out[squeeze(name)] = name
		for other := range strings.FieldsSeq(others) {
			out[other] = name
		}
	}
	return out
}()

// Provider is the one name of a provider, whatever its spelling: case, spaces and the
// signs - _ . do not count, some have aliases, and what an SDK puts behind a dot or a
// slash is its own matter, as in openai.chat. An unknown name is only squeezed.
func Provider(provider string) string {
	whole := squeeze(provider)
	for s := provider; s != ""; s = s[:max(0, strings.LastIndexAny(s, "./:"))] {
		short := squeeze(s)
		if name, ok := names[short]; ok {
			return name
		}
		for _, manner := range manners {
			if name, ok := names[strings.TrimSuffix(short, manner)]; ok {
				return name
			}
		}
	}
	return whole
}

// KnownProvider reports whether a provider has a name here.
func KnownProvider(provider string) bool {
	_, ok := spellings[Provider(provider)]
	return ok
}

// squeeze drops case, spaces and signs.
func squeeze(name string) string {
	return strings.ToLower(strings.Map(func(c rune) rune {
		switch c {
		case ' ', '\t', '-', '_', '.':
			return -1
		}
		return c
	}, name))
}
