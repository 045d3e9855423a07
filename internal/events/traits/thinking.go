package traits

import (
	"slices"
	"strings"

	"compactd/internal/events/models"
)

// Binding states whether the thinking of a model goes only with the history that it was made
// under.
type Binding uint8

// The bindings.
const (
	Free    Binding = iota // it goes with any history
	MayBind                // of a model that no table names: thinking of the open tool loop may be demanded
	Binds                  // it is refused behind another history, and nowhere demanded
)

// version is that of a model, such as 5.1.
type version struct{ major, minor int }

func (v version) after(w version) bool {
	return v.major > w.major || v.major == w.major && v.minor > w.minor
}

// unbound names, for each family of Claude, the last version whose thinking is not bound to
// what precedes it.
//
// Source: platform.claude.com/docs/en/build-with-claude/preserved-thinking and its page
// prefix-checks, read 2026-11: "Starting with Claude Fable 5.1"; the models with the check are
// Fable and Mythos 5.1 and 5.2, Opus 5.5, Sonnet 5.5 and Haiku 5.5. Accounts created since
// 2026-08-31 get a 400, and every account does with Fable 5.2.
var unbound = map[string]version{
	"fable":  {5, 0},
	"mythos": {5, 0},
	"opus":   {5, 0},
	"sonnet": {5, 0},
	"haiku":  {4, 5},

	"claude":  {3, 99}, // up to claude-3-7-sonnet the version came first
	"instant": {1, 99},
}

// mythosPreview came before Mythos 5 and has no version.
const mythosPreview = "mythospreview"

// Thinking states whether the thinking of a model is bound to what precedes it. A model of
// Anthropic that the table does not name may be, and so may one whose name shows no maker where
// the provider is Anthropic, Bedrock or not known: an alias, or the ARN of a profile.
//
// The models that bind their thinking think adaptively: their API demands no thinking anywhere.
// Older ones demand that of the open tool loop, where thinking is switched on
// (platform.claude.com/docs/en/build-with-claude/extended-thinking, read 2026-11: "Expected
// `thinking` or `redacted_thinking`, but found `tool_use`").
func Thinking(provider, model string) Binding {
	name := strings.ToLower(model)
	if !mayBeClaude(provider, name) || strings.Contains(squeeze(name), mythosPreview) {
		return Free
	}
	family, v, ok := versionOf(name)
	switch last, known := unbound[family]; {
	case !ok || !known:
		return MayBind
	case v.after(last):
		return Binds
	}
	return Free
}

// isClaude reports whether the name of a model, in lower case, is one of Anthropic's.
func isClaude(model string) bool {
	families := []string{"claude", "fable", "mythos", "opus", "sonnet", "haiku"}
	return slices.ContainsFunc(families, func(family string) bool { return strings.Contains(model, family) })
}

// mayBeClaude reports whether a model is or may be one of Anthropic's, wherever it is served.
func mayBeClaude(provider, model string) bool {
	if isClaude(model) {
		return true
	}
	if models.Maker(model) != "" {
		return false
	}
	switch models.Provider(provider) {
	case "anthropic", "bedrock":
		return true
	case "":
		return model == ""
	}
	return false
}

// versionOf reads family and version from a name such as claude-3.7-sonnet,
// us.anthropic.claude-opus-5-5-20260922-v1:0 or claude-haiku-4-5@20251001: the first one or two
// numbers of one or two digits, and the word before them.
func versionOf(name string) (family string, v version, ok bool) {
	name = name[max(strings.Index(name, "claude"), 0):]
	between := func(c rune) bool { return c < '0' || c > '9' && c < 'a' || c > 'z' }
	for field := range strings.FieldsFuncSeq(name, between) { // no memory: each turn comes here
		n, isNumber := number(field)
		switch {
		case ok:
			if isNumber {
				v.minor = n
			}
			return family, v, true
		case isNumber:
			v.major, ok = n, true
		default:
			family = field
		}
	}
	return family, v, ok
}

// number reads one or two digits, with or without a leading v, as a version has. A date has
// more.
func number(s string) (n int, ok bool) {
	s = strings.TrimPrefix(s, "v")
	if len(s) > 2 {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, len(s) > 0
}

// squeeze drops case, spaces and signs of a name.
func squeeze(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(name))
}
