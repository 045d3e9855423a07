package traits

import "slices"

// reasoned are the providers of chat completions that refuse a call without the
// reasoning_content that it came with, while their model thinks. It may be blank, and is ignored
// where the model does not think.
//
// Source, read 2026-11: api-docs.deepseek.com/guides/thinking_mode, "For turns that do perform
// tool calls, the reasoning_content must be fully passed back to the API in all subsequent
// requests"; platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model, "reasoning_content is
// missing in assistant tool call message".
var reasoned = []string{"deepseek", "moonshot", "moonshotai", "kimi"}

// DemandsReasoning reports whether a provider refuses calls without reasoning_content.
func DemandsReasoning(provider string) bool { return slices.Contains(reasoned, squeeze(provider)) }
