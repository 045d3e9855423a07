package traits

import (
	"slices"
	"strings"

	"compactd/internal/events/models"
)

// thinkers are the families of models that think, by how their names begin. Of a family with a
// version it is the first one.
//
// Source, read 2026-11: platform.claude.com/docs/en/build-with-claude/extended-thinking (since
// Claude 3.7), developers.openai.com/api/docs/guides/reasoning, ai.google.dev/gemini-api/docs/thinking.
var thinkers = map[string][]string{
	"openai":    {"o1", "o3", "o4", "gpt-5", "gpt-6", "codex"},
	"google-ai": {"gemini-2.5", "gemini-3", "gemini-4"},
}

// firstThinking is the first Claude that thinks.
var firstThinking = version{3, 7}

// HidesThinking reports whether a model thinks, and its provider shows that in part or not at all,
// while the next prompt has it: an answer is larger than its text.
func HidesThinking(model string) bool {
	name := strings.ToLower(model)
	if isClaude(name) {
		_, v, ok := versionOf(name)
		return ok && !firstThinking.after(v)
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	return slices.ContainsFunc(thinkers[models.Maker(name)], func(family string) bool { return strings.HasPrefix(name, family) })
}
