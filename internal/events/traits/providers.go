package traits

// providers are the demands of providers of chat completions, by their squeezed names.
//
// Alternates. Source, read 2026-11: docs.perplexity.ai, "user or tool message(s) should alternate
// with assistant message(s)"; github.com/mistralai/mistral-common, validator.py; and the chat
// templates of Mistral, Gemma and Llama, which vLLM and Ollama apply: "conversation roles must
// alternate user/assistant/user/assistant/...". Templates of other models behind these two
// take joined messages too.
//
// Bridges. Source, read 2026-11: github.com/mistralai/mistral-common, validator.py, and the text of
// the 400, "Unexpected role 'user' after role 'tool'" (datapizza-labs/datapizza-ai/issues/98,
// avante-corp/avante.nvim/pull/2695).
//
// NoPrefill. Mistral: github.com/mistralai/mistral-common, validator.py, "Expected last role User or
// Tool (or Assistant with prefix True)"; Perplexity: "Last message must have role user or tool";
// read in 2026-11.
//
// Reasons, while the model thinks. The reasoning_content may be blank, and is ignored where the
// model does not think. Source, read 2026-11: api-docs.deepseek.com/guides/thinking_mode, "For turns
// that do perform tool calls, the reasoning_content must be fully passed back to the API in all
// subsequent requests"; platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model,
// "reasoning_content is missing in assistant tool call message".
//
// The calls that compactd makes have a blank one. A call that an agent sent without is left so:
// whether its model thought is known to the agent alone, and where a blank one stands beside each
// call models answer less (github.com/Lingtai-AI/lingtai-kernel/issues/9, 2026-05: 40 % of
// DeepSeek V4's answers were empty). An empty string is refused, a space is not
// (github.com/NousResearch/hermes-agent/pull/18263, 2026-05).
//
// Drops, members of another model's reasoning, of before the session changed its provider. Source,
// read 2026-11: github.com/Kilo-Org/kilocode/issues/10375 and QwenLM/qwen-code/issues/11045
// (Cerebras, "property 'messages.2.assistant.reasoning_content' is unsupported"),
// tashfeenahmed/freellmapi/issues/1070 and agentjido/req_llm/issues/772 (Groq, reasoning_content and
// reasoning_details; reasoning is taken by both), charmbracelet/crush/issues/1590 and
// BerriAI/litellm/issues/30835 (Mistral, "Extra inputs are not permitted").
var providers = map[string]Demands{
	"mistral": mistral, "mistralai": mistral,
	"perplexity": {Alternates: true, NoPrefill: true},
	"vllm":       {Alternates: true}, "ollama": {Alternates: true},
	"deepseek": {Reasons: true}, "moonshot": {Reasons: true}, "moonshotai": {Reasons: true}, "moonshotaicn": {Reasons: true}, "kimi": {Reasons: true},
	"groq": {Drops: mistral.Drops[:2]}, "cerebras": {Drops: mistral.Drops[:2]},
	"openai": {IDs: shortIDs}, "azure": {IDs: shortIDs}, "azureopenai": {IDs: shortIDs}, "githubcopilot": {IDs: shortIDs},
}

var (
	mistral = Demands{
		Alternates: true, Bridges: true, NoPrefill: true, IDs: IDs{Nine: true}, Drops: []string{"reasoning_content", "reasoning_details", "reasoning"},
	}
	shortIDs = IDs{Max: shortID}
)

// gateways pass the refusals on that OpenAI has of ids.
var gateways = []string{"openrouter", "openrouterai", "litellm", "portkey"}

// passing are the gateways that pass the refusal of calls without reasoning on.
//
// Source, read 2026-11: github.com/anomalyco/opencode/issues/29690 (Kimi K2.6 through
// OpenRouter), github.com/warpdotdev/warp/issues/11587 and
// github.com/spacedriveapp/spacebot/issues/549 (DeepSeek and Kimi through OpenCode). Others that
// serve these models run them themselves and demand nothing.
var passing = []string{"openrouter", "openrouterai", "opencode", "opencodezen", "opencodego"}
