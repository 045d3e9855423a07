package measure

import (
	"strings"
)

// aliases are other names of providers, squeezed as by [squeeze]. A provider that
// the tables of windows or rates know by its own name needs none.
var aliases = map[string]string{
	"amazonbedrock": "bedrock", "awsbedrock": "bedrock",
	"amazonsagemaker": "sagemaker", "awssagemaker": "sagemaker",
	"azureopenai":    "azure",
	"fireworksai":    "fireworks",
	"google":         "google-ai",
	"googleai":       "google-ai",
	"googleaistudio": "google-ai",
	"gemini":         "google-ai",
	"googlevertex":   "vertex",
	"vertexai":       "vertex",
	"hf":             "huggingface",
	"lmstudio":       "lm-studio",
	"mistralai":      "mistral",
	"nim":            "nvidia-nim",
	"nvidia":         "nvidia-nim",
	"nvidianim":      "nvidia-nim",
	"perplexityai":   "perplexity",
	"together":       "together-ai",
	"togetherai":     "together-ai",
	"grok":           "xai",
	"workersai":      "cloudflare",
}

// Provider is the one name of a provider, whatever its spelling: case, spaces
// and the signs - _ . do not count, and some providers have aliases. An unknown name is
// only squeezed.
func Provider(provider string) string {
	s := squeeze(provider)
	if name, ok := aliases[s]; ok {
		return name
	}
	return s
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
