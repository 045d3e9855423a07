package snippet

import (
	"strings"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/sanitize"
)

// Forms that give a text the look of another author's: of a message with a role,
// of a call, of the end of the element that a summary stands in.
var (
	// roleTag are the tags of chat templates, agents and this package.
	roleTag = lazyregexp.New(`(?i)<(/?s>|\s*/?\s*(?:\|[a-z_ ]{1,40}\||(?:` +
		`(?:antml:)?(?:invoke|parameter|function_calls?|function_results?)|` +
		`tool[_-]?(?:calls?|use|results?|code|outputs?)|` +
		`system(?:[_-][a-z]+)?|developer|assistant|human|user|instructions?|important|` +
		`condensed-summary|analysis|summary|conversation|history|` +
		`[a-z_-]{1,30}[_-]reminder|start_of_turn|end_of_turn` +
		`)\b))`)
	// bracketTag are those in brackets.
	bracketTag = lazyregexp.New(`(?i)(?:\[|<<)\s*(/?(?:INST|SYS|SYSTEM|TOOL_CALLS|AVAILABLE_TOOLS|turn \d+))\s*(?:\]|>>)`)
	// fencePattern is a fence of a prompt.
	fencePattern = lazyregexp.New(`={3,}`)
	// roleHead is a line that begins as a speaker's.
	roleHead = lazyregexp.New(`(?i)^[\W_]{0,8}(?:system|developer|assistant|human|user|tool)(?:[ _](?:prompt|message|notice|instructions?|override|update))?[*_"\]]{0,3}\s{0,2}:`)
)

// quotedLabel begins a line that would read as a message of another author.
const quotedLabel = "quoted: "

// Neutral takes the form of a message, a call or a tag from one line, and keeps
// its words.
func Neutral(s string) string {
	s = strings.TrimLeft(s, "# ")
	s = bracketTag().ReplaceAllString(s, "($1)")
	s = Inert(untagged(s))
	s = fencePattern().ReplaceAllString(s, "--")
	if roleHead().MatchString(s) {
		s = quotedLabel + s
	}
	return s
}

// untagged takes the brackets of tags that begin another author's message, also of those that
// are written in full width or with characters that no reader sees.
func untagged(s string) string {
	t := sanitize.Normalize(s)
	var edits []Edit
	for _, m := range roleTag().FindAllStringIndex(t.S, -1) {
		edits = append(edits, Edit{m[0], m[0] + 1, "&lt;"})
	}
	return Apply(s, &t, edits)
}

// ClipNeutral is clip for text of a model or a tool.
func ClipNeutral(s string, n int) string { return Neutral(Clip(s, n)) }
