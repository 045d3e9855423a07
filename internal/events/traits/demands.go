package traits

import (
	"slices"
	"strings"
)

// Demands are what a provider demands of a history beyond the dialect of its messages. One
// table serves all: the renderer makes histories by it, package validate checks them by it, and
// so does the strict provider of the tests.
type Demands struct {
	Alternates bool     // refuses two messages of the user, or of the assistant, in a row
	Reasons    bool     // refuses calls without the reasoning_content that they came with
	Drops      []string // members of an assistant's message that it refuses
	IDs        IDs      // of calls
	UniqueIDs  bool     // refuses an id that another call of the history has
	Bridges    bool     // refuses a user's message behind a tool's, without one of the assistant between them
	NoPrefill  bool     // refuses a history that ends with an assistant's words
}

// MaxMarks is how many marks for a provider's cache a call may have, those of its system prompt
// and tools included. Source, read 2026-11: platform.claude.com/docs/en/build-with-claude/
// prompt-caching, "You can define up to 4 cache breakpoints", also through Bedrock
// (docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html, "Max number of cache
// checkpoints per request" 4) and gateways; the AI SDK ignores those behind the fourth.
const MaxMarks = 4

// DemandsOf returns the demands of a provider on histories of a dialect, by their names.
func DemandsOf[F ~string](dialect F, provider, model string) Demands {
	p, name := squeeze(provider), strings.ToLower(model)
	claude := strings.Contains(name, "claude") || p == "anthropic" && dialect != "gemini"
	d := providers[p]
	d.NoPrefill = d.NoPrefill || claudeRefusesPrefill(p, name)
	if dialect == "openai" {
		ofThese := strings.Contains(name, "deepseek") || strings.Contains(name, "kimi")
		d.Reasons = d.Reasons || ofThese && slices.Contains(passing, p)
	} else {
		d.Reasons, d.Drops = false, nil
	}
	switch dialect {
	case "anthropic":
		d.IDs, d.UniqueIDs = IDs{Plain: true}, true
	case "bedrock":
		d.IDs, d.UniqueIDs = IDs{Plain: true, Max: longID}, true
	case "openai-responses":
		d.IDs = IDs{Max: longID}
	case "gemini":
		d.IDs, d.NoPrefill, d.Alternates = IDs{}, true, false
	default: // many providers take it
		bedrock := strings.Contains(p, "bedrock")
		switch {
		case d.IDs.Nine:
		case bedrock:
			d.IDs = IDs{Plain: true, Max: longID}
		case claude:
			d.IDs = IDs{Plain: true}
		case slices.Contains(gateways, p) && strings.Contains(name, "gpt-"):
			d.IDs = shortIDs
		}
		d.UniqueIDs = dialect != "openai" && (claude || bedrock)
	}
	return d
}

// lastPrefill is the last version of Claude that goes on with the words of an assistant at the
// end of a history. Source, read 2026-11: platform.claude.com/docs/en/about-claude/models,
// "What's new in Claude 4.6": "Prefilling assistant messages is not supported", and the text of
// the 400, "This model does not support assistant message prefill. The conversation must end
// with a user message."
var lastPrefill = version{4, 5}

func claudeRefusesPrefill(provider, model string) bool {
	if !isClaude(model) && provider != "anthropic" {
		return false
	}
	_, v, ok := versionOf(model)
	return !ok || v.after(lastPrefill)
}
