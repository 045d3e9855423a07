package model

import "fmt"

// Provider names who serves a model.
type Provider string

// The providers. All but the last four groups speak OpenAI's chat completions.
const (
	OpenAI      Provider = "openai"
	Azure       Provider = "azure" // the v1 API: https://<resource>.openai.azure.com/openai/v1/
	Mistral     Provider = "mistral"
	Ollama      Provider = "ollama"
	LiteLLM     Provider = "litellm"
	VLLM        Provider = "vllm"
	OpenRouter  Provider = "openrouter"
	HuggingFace Provider = "huggingface"

	Anthropic       Provider = "anthropic"
	AnthropicVertex Provider = "anthropic-vertex" // Claude on Google Cloud
	Bedrock         Provider = "bedrock"          // Claude on AWS

	Google Provider = "google" // AI Studio
	Vertex Provider = "vertex" // Gemini on Google Cloud
)

// wire makes the client of a provider's SDK.
type wire func(Config, preset) (completer, error)

// preset is what is known of a provider.
type preset struct {
	wire    wire
	baseURL string   // "" for none; %s stands for the location
	keys    []string // where people keep the key: environment variables, best first
	keyless bool     // works without a key
	vertex  bool     // is a place in Google Cloud
	model   string   // the default; "" for none
	limits  Limits   // of its usual models
	// maxTokens: the bound on output is called max_tokens, as it was at OpenAI
	// before its models reasoned. OpenAI refuses that name now, Mistral the new one.
	maxTokens bool
}

// What the models of today have at least; a larger one is said by Window and MaxOutput.
var (
	limitsOpenAI    = Limits{Window: 128_000, MaxOutput: 16_384}   // gpt-4o
	limitsAnthropic = Limits{Window: 200_000, MaxOutput: 8_192}    // claude-3-5-haiku
	limitsGoogle    = Limits{Window: 1_048_576, MaxOutput: 65_536} // gemini-2.5-flash
	limitsOpen      = Limits{Window: 32_768, MaxOutput: 4_096}     // open weights, as they are served
)

// The default model of 000, when Google credentials are present.
const geminiFlash = "gemini-2.5-flash"

var presets = map[Provider]preset{
	OpenAI: {wire: newOpenAI, baseURL: "https://api.openai.com/v1/", keys: []string{"OPENAI_API_KEY"}, limits: limitsOpenAI},
	Azure:  {wire: newOpenAI, keys: []string{"AZURE_OPENAI_API_KEY"}, limits: limitsOpenAI},
	Mistral: {
		wire: newOpenAI, baseURL: "https://api.mistral.ai/v1/", keys: []string{"MISTRAL_API_KEY"},
		limits: limitsOpen, maxTokens: true,
	},
	Ollama: {
		wire: newOpenAI, baseURL: "http://127.0.0.1:11434/v1/", keyless: true,
		limits: Limits{MaxOutput: 4_096}, maxTokens: true,
	},
	LiteLLM: {wire: newOpenAI, keys: []string{"LITELLM_API_KEY"}, keyless: true, limits: limitsOpen, maxTokens: true},
	VLLM:    {wire: newOpenAI, keys: []string{"VLLM_API_KEY"}, keyless: true, limits: limitsOpen, maxTokens: true},
	OpenRouter: {
		wire: newOpenAI, baseURL: "https://openrouter.ai/api/v1/", keys: []string{"OPENROUTER_API_KEY"},
		limits: limitsOpen, maxTokens: true,
	},
	HuggingFace: {
		wire: newOpenAI, baseURL: "https://router.huggingface.co/v1/", keys: []string{"HF_TOKEN"},
		limits: limitsOpen, maxTokens: true,
	},

	Anthropic: {wire: newAnthropic, baseURL: "https://api.anthropic.com/", keys: []string{"ANTHROPIC_API_KEY"}, limits: limitsAnthropic},

	Google: {
		wire: newGoogle, baseURL: "https://generativelanguage.googleapis.com/", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		model: geminiFlash, limits: limitsGoogle,
	},
	Vertex: {wire: newGoogle, baseURL: "https://%s/", vertex: true, model: geminiFlash, limits: limitsGoogle},
}

// base is the provider's own address, "" for none.
func (p preset) base(location string) string {
	if !p.vertex {
		return p.baseURL
	}
	return fmt.Sprintf(p.baseURL, vertexHost(location))
}

// vertexHost is where Vertex AI is served: https://cloud.google.com/vertex-ai/docs/general/locations.
func vertexHost(location string) string {
	switch location {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu":
		return "aiplatform." + location + ".rep.googleapis.com"
	}
	return location + "-aiplatform.googleapis.com"
}
