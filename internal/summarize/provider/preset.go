package provider

import "compactd/internal/summarize/model"

// Name is the service that serves a model.
type Name string

// The providers. The first group speaks OpenAI's chat completions.
const (
	OpenAI      Name = "openai"
	Azure       Name = "azure" // the v1 API: https://<resource>.openai.azure.com/openai/v1/
	Mistral     Name = "mistral"
	Ollama      Name = "ollama"
	LiteLLM     Name = "litellm"
	VLLM        Name = "vllm"
	OpenRouter  Name = "openrouter"
	HuggingFace Name = "huggingface"

	Anthropic       Name = "anthropic"
	AnthropicVertex Name = "anthropic-vertex" // Claude on Google Cloud
	Bedrock         Name = "bedrock"          // Claude on AWS

	Google Name = "google" // AI Studio
	Vertex Name = "vertex" // Gemini on Google Cloud
)

// wire makes the client of a wire format.
type wire func(Config, preset) (completer, error)

// preset has the facts of a provider.
type preset struct {
	wire    wire
	baseURL string       // "" for none
	keys    []string     // where people keep the key: environment variables, best first
	keyless bool         // works without a key, or finds credentials by itself
	model   string       // the default; "" for none
	limits  model.Limits // of its usual models
	// host is that of a location, for the clouds; places are the environment
	// variables that name one, best first.
	host    func(location string) string
	places  []string
	project bool // needs a project of Google Cloud
	// maxTokens: the bound on output is called max_tokens, as it was at OpenAI
	// before its models reasoned. OpenAI refuses that name now, Mistral the new one.
	maxTokens bool
}

// Limits that the models of today have at least; Window and MaxOutput report larger ones.
var (
	limitsOpenAI    = model.Limits{Window: 128_000, MaxOutput: 16_384}   // gpt-4o
	limitsAnthropic = model.Limits{Window: 200_000, MaxOutput: 8_192}    // claude-3-5-haiku
	limitsGoogle    = model.Limits{Window: 1_048_576, MaxOutput: 65_536} // gemini-2.5-flash
	limitsOpen      = model.Limits{Window: 32_768, MaxOutput: 4_096}     // open weights, as they are served
)

// geminiFlash is the default model with Google credentials.
const geminiFlash = "gemini-2.5-flash"

var presets = map[Name]preset{
	OpenAI: {wire: newOpenAI, baseURL: "https://api.openai.com/v1/", keys: []string{"OPENAI_API_KEY"}, limits: limitsOpenAI},
	Azure:  {wire: newOpenAI, keys: []string{"AZURE_OPENAI_API_KEY"}, limits: limitsOpenAI},
	Mistral: {
		wire: newOpenAI, baseURL: "https://api.mistral.ai/v1/", keys: []string{"MISTRAL_API_KEY"},
		limits: limitsOpen, maxTokens: true,
	},
	Ollama: {
		wire: newOpenAI, baseURL: "http://127.0.0.1:11434/v1/", keyless: true,
		limits: model.Limits{MaxOutput: 4_096}, maxTokens: true,
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

	Anthropic:       {wire: newAnthropic, baseURL: "https://api.anthropic.com/", keys: []string{"ANTHROPIC_API_KEY"}, limits: limitsAnthropic},
	AnthropicVertex: {wire: newClaudeVertex, keyless: true, project: true, host: vertexHost, places: vertexPlaces, limits: limitsAnthropic},
	Bedrock: {
		wire: newClaudeBedrock, keys: []string{"AWS_BEARER_TOKEN_BEDROCK"}, keyless: true,
		host: bedrockHost, places: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}, limits: limitsAnthropic,
	},

	Google: {
		wire: newGoogle, baseURL: "https://generativelanguage.googleapis.com/", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		model: geminiFlash, limits: limitsGoogle,
	},
	Vertex: {
		wire: newGeminiVertex, keyless: true, project: true, host: vertexHost, places: vertexPlaces,
		model: geminiFlash, limits: limitsGoogle,
	},
}

// base is the provider's own address, "" for none.
func (p preset) base(location string) string {
	if p.host == nil || location == "" {
		return p.baseURL
	}
	return "https://" + p.host(location) + "/"
}

// bedrockHost: https://docs.aws.amazon.com/general/latest/gr/bedrock.html.
func bedrockHost(region string) string { return "bedrock-runtime." + region + ".amazonaws.com" }

var vertexPlaces = []string{"GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"}

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
