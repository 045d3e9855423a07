package traits

import (
	"slices"
	"strings"
)

// reasoned are the providers of chat completions that refuse a call without the
// reasoning_content that it came with, while their model thinks. It may be blank, and is ignored
// where the model does not think.
//
// Source, read 2026-11: api-docs.deepseek.com/guides/thinking_mode, "For turns that do perform
// tool calls, the reasoning_content must be fully passed back to the API in all subsequent
// requests"; platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model, "reasoning_content is
// missing in assistant tool call message".
//
// The calls that compactd makes have a blank one. A call that an agent sent without is left so:
// whether its model thought is known to the agent alone, and where a blank one stands beside each
// call models answer less (github.com/Lingtai-AI/lingtai-kernel/issues/9, 2026-05: 40 % of
// DeepSeek V4's answers were empty). An empty string is refused, a space is not
// (github.com/NousResearch/hermes-agent/pull/18263, 2026-05).
var reasoned = []string{"deepseek", "moonshot", "moonshotai", "moonshotaicn", "kimi"}

// passing are the gateways that pass such a refusal on, for the models of these providers.
//
// Source, read 2026-11: github.com/anomalyco/opencode/issues/29690 (Kimi K2.6 through
// OpenRouter), github.com/warpdotdev/warp/issues/11587 and
// github.com/spacedriveapp/spacebot/issues/549 (DeepSeek and Kimi through OpenCode). Others that
// serve these models run them themselves and demand nothing.
var passing = []string{"openrouter", "openrouterai", "opencode", "opencodezen", "opencodego"}

// DemandsReasoning reports whether a provider refuses calls of a model without
// reasoning_content.
func DemandsReasoning(provider, model string) bool {
	provider, model = squeeze(provider), strings.ToLower(model)
	ofThese := strings.Contains(model, "deepseek") || strings.Contains(model, "kimi")
	return slices.Contains(reasoned, provider) || ofThese && slices.Contains(passing, provider)
}

// refusing are the providers of chat completions that refuse members of reasoning in an
// assistant's message, and which: another model's, of before the session changed its provider.
//
// Source, read 2026-11: github.com/Kilo-Org/kilocode/issues/10375 and
// QwenLM/qwen-code/issues/11045 (Cerebras, "property 'messages.2.assistant.reasoning_content' is
// unsupported"), tashfeenahmed/freellmapi/issues/1070 and agentjido/req_llm/issues/772 (Groq,
// reasoning_content and reasoning_details; reasoning is taken by both), charmbracelet/crush/issues/1590
// and BerriAI/litellm/issues/30835 (Mistral, "Extra inputs are not permitted").
var refusing = map[string][]string{
	"groq":      {"reasoning_content", "reasoning_details"},
	"cerebras":  {"reasoning_content", "reasoning_details"},
	"mistral":   {"reasoning_content", "reasoning_details", "reasoning"},
	"mistralai": {"reasoning_content", "reasoning_details", "reasoning"},
}

// RefusesReasoning lists the members of an assistant's message that a provider refuses.
func RefusesReasoning(provider string) []string { return refusing[squeeze(provider)] }
