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
	Reasons    bool     // refuses calls without reasoning; see [DemandsReasoning]
	Drops      []string // members of an assistant's message that it refuses; see [RefusesReasoning]
	IDs        IDs      // of calls
	UniqueIDs  bool     // refuses an id that another call of the history has
	Bridges    bool     // refuses a user's message behind a tool's; see [Bridges]
	NoPrefill  bool     // refuses a history that ends with an assistant's words; see [RefusesPrefill]
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
	d := Demands{Alternates: slices.Contains(alternating, p), Bridges: Bridges(provider), NoPrefill: RefusesPrefill(provider, model)}
	switch dialect {
	case "anthropic":
		d.IDs, d.UniqueIDs = IDs{Plain: true}, true
	case "bedrock":
		d.IDs, d.UniqueIDs = IDs{Plain: true, Max: longID}, true
	case "openai-responses":
		d.IDs.Max = longID
	case "gemini":
		d.NoPrefill, d.Alternates = true, false
	case "openai":
		d.Reasons, d.Drops = DemandsReasoning(provider, model), RefusesReasoning(provider)
		fallthrough
	default:
		d.IDs, d.UniqueIDs = idsOf(p, name, claude), dialect != "openai" && (claude || strings.Contains(p, "bedrock"))
	}
	return d
}

// idsOf is for dialects that many providers take.
func idsOf(provider, model string, claude bool) IDs {
	switch {
	case provider == "mistral" || provider == "mistralai":
		return IDs{Nine: true}
	case strings.Contains(provider, "bedrock"):
		return IDs{Plain: true, Max: longID}
	case claude:
		return IDs{Plain: true}
	case slices.Contains(shortIDs, provider), slices.Contains(gateways, provider) && strings.Contains(model, "gpt-"):
		return IDs{Max: shortID}
	default:
		return IDs{}
	}
}

// shortIDs serve models of OpenAI's chat completions themselves, and gateways pass their
// refusals on.
var (
	shortIDs = []string{"openai", "azure", "azureopenai", "githubcopilot"}
	gateways = []string{"openrouter", "openrouterai", "litellm", "portkey"}
)

// lastPrefill is the last version of Claude that goes on with the words of an assistant at the
// end of a history. Source, read 2026-11: platform.claude.com/docs/en/about-claude/models,
// "What's new in Claude 4.6": "Prefilling assistant messages is not supported", and the text of
// the 400, "This model does not support assistant message prefill. The conversation must end
// with a user message."
var lastPrefill = version{4, 5}

// RefusesPrefill reports whether a provider refuses a history that ends with an assistant's
// words. Mistral: github.com/mistralai/mistral-common, validator.py, "Expected last role User or
// Tool (or Assistant with prefix True)"; Perplexity: "Last message must have role user or tool";
// read in 2026-11.
func RefusesPrefill(provider, model string) bool {
	p, name := squeeze(provider), strings.ToLower(model)
	if slices.Contains([]string{"mistral", "mistralai", "perplexity"}, p) {
		return true
	}
	if !isClaude(name) && p != "anthropic" {
		return false
	}
	_, v, ok := versionOf(name)
	return !ok || v.after(lastPrefill)
}

// Bridges reports whether a provider refuses a message of the user behind one of a tool, without
// one of the assistant between them. Source, read 2026-11: github.com/mistralai/mistral-common,
// validator.py, and the text of the 400, "Unexpected role 'user' after role 'tool'"
// (datapizza-labs/datapizza-ai/issues/98, avante-corp/avante.nvim/pull/2695).
func Bridges(provider string) bool {
	return slices.Contains([]string{"mistral", "mistralai"}, squeeze(provider))
}
