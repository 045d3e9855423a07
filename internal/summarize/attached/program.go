package attached

import (
	"strings"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// isProgram reports words that a program wrote.
func isProgram(s string) bool {
	lower := snippet.Lowered(s)
	return snippet.Matches(lower, programWords) && (program().MatchString(lower) || scheduled().MatchString(lower) || machine().MatchString(lower) && !firstPerson().MatchString(lower) || reported().MatchString(lower) && addressed().MatchString(lower))
}

// maxPointer is the length of the longest line that points to the text below it, in runes.
const maxPointer = 80

// maxDeictic is the largest number of words in a line that names its text only by "this".
const maxDeictic = 9

// pointsBelow reports a first paragraph of one short line that points to the text below it.
func (c *splitter) pointsBelow(s string) bool {
	if len(c.own) > 0 || c.ahead() == nil || utf8.RuneCountInString(s) > maxPointer {
		return false
	}
	lower := strings.Trim(lowered(s), " .:!?：。！？…")
	switch {
	case !c.gap():
		return told().MatchString(lower) && !self().MatchString(lower)
	case ordered().MatchString(lower):
		return true
	case pointer().MatchString(lower):
		return true
	case strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？"):
		if opinion().MatchString(lower) {
			return true
		}
	case told().MatchString(lower):
		return !self().MatchString(lower)
	}
	return len(strings.Fields(lower)) <= maxDeictic && deictic().MatchString(lower) && !worked().MatchString(lower) && !snippet.IsRule(s)
}

// answered returns the line with the user's words in a message of a program whose form has a place for them,
// 0 for none: an answer to a question of the agent, a request below the state of an editor. The last such
// place counts, since earlier text may contain one.
func (c *splitter) answered() int {
	if len(c.all) == 0 {
		return 0
	}
	switch head := c.all[0].text; {
	case questionResult().MatchString(head):
		for i := range c.all[:min(len(c.all), answerLines)] {
			if ownElement().MatchString(c.all[i].text) {
				return i
			}
		}
	case head == editorState:
		for i := len(c.all) - 1; i > 0; i-- {
			if requestBelow().MatchString(c.all[i].text) {
				return i + 1
			}
		}
	}
	return 0
}

const (
	editorState = "# Context from my IDE setup:"
	answerLines = 5
)

var (
	questionResult = lazyregexp.New(`^\[(?:attempt_completion|ask_followup_question|plan_mode_respond|new_task)(?: for '.*')?\] Result:$`)
	ownElement     = lazyregexp.New(`^<(?:feedback|answer|user_message)>`)
	requestBelow   = lazyregexp.New(`^## My request for \w+:$`)
)
