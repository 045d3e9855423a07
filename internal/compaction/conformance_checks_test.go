package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/validate"
)

// Checks of our answer where it is not the recorded one. Each check looks at
// the answer alone, and returns what is wrong with it, "" if nothing is.

// cutIsSound: a head of the text with "..." behind, whole runes, within the budget.
func cutIsSound(c *vectorCase, _, got any) string {
	in := c.input()
	text := at(got, "text").(string)
	head, dots := strings.CutSuffix(text, "...")
	switch cost := c.manner.rate(in.Provider).Text(size(text)); {
	case text == in.Text:
		return "it was not cut"
	case cost > max(in.MaxTokens, 0):
		return fmt.Sprintf("it costs %d of %d tokens", cost, in.MaxTokens)
	case !utf8.ValidString(text):
		return "a rune is broken"
	case !dots && strings.Trim(text, ".") != "" || !strings.HasPrefix(in.Text, head) && strings.Trim(head, ".") != "":
		return "it is no head with dots"
	}
	return ""
}

// outputIsSound: one or both ends of the output, whole runes, within both limits.
func outputIsSound(c *vectorCase, _, got any) string {
	in, l := c.output()
	text, _ := at(got, "content").(string)
	if preview, ok := at(got, "preview").(string); ok {
		text = preview
	}
	before, rest, ok := strings.Cut(text, "\n\n[")
	_, after, closed := strings.Cut(rest, "]\n")
	if !closed {
		after = ""
	}
	after = strings.TrimPrefix(after, "\n")
	switch lines := int64(strings.Count(before, "\n") + strings.Count(after, "\n")); {
	case !ok:
		return "there is no notice"
	case int64(len(before)+len(after)) > l.MaxBytes:
		return fmt.Sprintf("%d bytes of %d", len(before)+len(after), l.MaxBytes)
	case lines >= max(l.MaxLines, 1):
		return fmt.Sprintf("%d lines of %d", lines+1, l.MaxLines)
	case !utf8.ValidString(text):
		return "a rune is broken"
	case !strings.HasPrefix(in.Output, before) || !strings.HasSuffix(in.Output, after):
		return "what is kept is no end of the output"
	}
	return ""
}

// dedupeIsSound: only results of tools refer to a later read, each to one of the
// same path that is whole.
func dedupeIsSound(c *vectorCase, _, got any) string {
	var in stageInput
	c.into(&in)
	messages := listed(got)
	if len(messages) != len(in.Messages) {
		return fmt.Sprintf("%d messages of %d", len(messages), len(in.Messages))
	}
	for i, m := range messages {
		if came(in.Messages, m) {
			continue
		}
		path, ok := strings.CutPrefix(at(m, "content").(string), "[File ")
		path, refers := strings.CutSuffix(path, " - refer to latest read below]")
		later := slices.ContainsFunc(messages[i+1:], func(x any) bool {
			text, _ := at(x, "content").(string)
			return at(x, "role") == "tool_result" && !strings.HasPrefix(text, "[File ") && strings.Contains(text, path)
		})
		if !ok || !refers || !later || at(m, "role") != "tool_result" {
			return fmt.Sprintf("message %d refers to nothing: %v", i, at(m, "content"))
		}
	}
	return ""
}

// repairIsSound: valid for its provider; nothing that came is lost or changed, and
// no more is made than in the record, if that is valid.
func repairIsSound(c *vectorCase, want, got any) string {
	var in stageInput
	c.into(&in)
	if bad := violations(got); bad != "" {
		return bad
	}
	ours, record := slices.DeleteFunc(listed(got), isBlank), slices.DeleteFunc(listed(want), isBlank)
	messages := worded(in.Messages)
	made := len(ours) - len(messages)
	if recorded := len(record) - len(messages); made > recorded && violations(want) == "" {
		return fmt.Sprintf("%d messages are made, %d in the record", made, recorded)
	}
	for _, m := range ours {
		if came(messages, m) {
			made++
		}
	}
	if made != len(ours) {
		return fmt.Sprintf("%d messages of %d are as they came or made", made, len(ours))
	}
	return ""
}

// isBlank: words without a letter. A provider refuses such a message, so it is left out.
func isBlank(m any) bool {
	text, isText := at(m, "content").(string)
	return isText && strings.TrimSpace(text) == "" && (at(m, "role") == "user" || at(m, "role") == "assistant")
}

// worded are the messages that are not blank.
func worded(messages []events.Raw) []events.Raw {
	return slices.DeleteFunc(slices.Clone(messages), func(raw events.Raw) bool { return isBlank(parsed(raw)) })
}

// came reports whether a message is among those that came, unchanged.
func came(messages []events.Raw, m any) bool {
	return slices.ContainsFunc(messages, func(raw events.Raw) bool { return mismatch(parsed(raw), m) == "" })
}

// historyIsSound: a compacted history that is never longer than it was, in order,
// with the first user's message, and within its target where the record is.
func historyIsSound(c *vectorCase, want, got any) string {
	var in stageInput
	c.into(&in)
	r := c.manner.rate(in.Config.Provider)
	if bad := outOfOrder(in.Messages, listed(got)); bad != "" {
		return bad
	}
	cost := func(v any) measure.Tokens { return history(rawOf(v), r) }
	target := or(in.Config.TargetTokens, in.TargetTokens)
	switch ours, record := cost(got), cost(want); {
	case ours > history(in.Messages, r) && target > 0:
		return fmt.Sprintf("it grew to %d tokens", ours)
	case mismatch(parsed(c.Input).(map[string]any)["messages"], got.(map[string]any)["messages"]) == "" && record < history(in.Messages, r) && target > 0:
		return "nothing was done"
	case target > 0 && record <= target && ours-lastUser(listed(got), r) > target && !summarized(got):
		return fmt.Sprintf("it costs %d of %d tokens; the record costs %d", ours, target, record)
	}
	if len(worded(in.Messages)) > 0 && len(listed(got)) == 0 {
		return "nothing is left"
	}
	return firstUser(in.Messages, listed(got))
}

// lastUser is the cost of the last message of the user, which stays until a later stage cuts its text.
func lastUser(messages []any, r measure.Rate) measure.Tokens {
	for _, m := range slices.Backward(messages) {
		if text, ok := at(m, "content").(string); ok && at(m, "role") == "user" {
			return r.Count(text)
		}
	}
	return 0
}

// compactedIsSound: a sound history that is valid for its provider.
func compactedIsSound(c *vectorCase, want, got any) string {
	if bad := historyIsSound(c, want, got); bad != "" {
		return bad
	}
	return violations(got)
}

// smallIsSound: a short history whose messages are all there, each with a content,
// and smaller than it was, unless a few words of each are too much for its target.
func smallIsSound(c *vectorCase, _, got any) string {
	var in stageInput
	c.into(&in)
	r := c.manner.rate(in.Config.Provider)
	target := or(in.Config.TargetTokens, in.TargetTokens)
	before, after := history(in.Messages, r), history(rawOf(got), r)
	fewest := r.PerConversation + measure.Tokens(len(in.Messages))*(r.PerMessage+r.Text(16))
	if after > before || after == before && (target == 0 || fewest <= target || floored(listed(got), after) != "") {
		return fmt.Sprintf("%d tokens of %d", after, before)
	}
	return sameMessages(in.Messages, listed(got))
}

// smallCompactIsSound: so is the whole answer, which is of the last stage, valid for
// its provider, and as large as it reports.
func smallCompactIsSound(c *vectorCase, want, got any) string {
	var in stageInput
	c.into(&in)
	if bad := smallIsSound(c, want, got); bad != "" {
		return bad
	}
	reported, cost := at(got, "tokensAfter").(float64), history(rawOf(got), c.manner.rate(in.Config.Provider))
	switch stages, _ := at(got, "stagesUsed").([]any); {
	case len(stages) != 1 || stages[0] != string(events.StageTruncate):
		return fmt.Sprintf("stages are %v", stages)
	case float64(cost) > reported:
		return fmt.Sprintf("it costs %d tokens, and reports %v", cost, reported)
	}
	return violations(got)
}

// sameMessages reports a message that is gone, another or empty.
func sameMessages(before []events.Raw, after []any) string {
	before, after = worded(before), slices.DeleteFunc(slices.Clone(after), isBlank)
	if len(after) != len(before) {
		return fmt.Sprintf("%d messages of %d", len(after), len(before))
	}
	for i, m := range after {
		was := parsed(before[i])
		if at(m, "id") != at(was, "id") || at(m, "role") != at(was, "role") {
			return fmt.Sprintf("message %d is another", i)
		}
		if at(m, "content") == "" && at(was, "content") != "" {
			return fmt.Sprintf("message %d is empty", i)
		}
	}
	return ""
}

// emergencyIsSound: every message in its place with a content, where it had one, and
// within what is available unless every content is down to its floor.
func emergencyIsSound(c *vectorCase, _, got any) string {
	var in emergencyInput
	c.into(&in)
	messages, r := listed(got), c.manner.rate(in.Provider)
	if bad := sameMessages(in.Messages, messages); bad != "" {
		return bad
	}
	if ours := history(rawOf(got), r); ours > in.room() {
		return floored(messages, ours)
	}
	return ""
}

// contentFloor is what is left of a content at least, in units: a few sentences, four
// times as much of what is worth more, and what a notice behind it is worth cutting for.
const contentFloor = 4*256 + 2*128

// floored reports a content that could have been cut further in a history that does
// not fit. The system's stay whole, as do those that are no text.
func floored(messages []any, cost measure.Tokens) string {
	for i, m := range messages {
		text, isText := at(m, "content").(string)
		if isText && at(m, "role") != "system" && size(text) > contentFloor {
			return fmt.Sprintf("it costs %d tokens, and message %d has %d units", cost, i, size(text))
		}
	}
	return ""
}

// splitIsSound: of more than four messages the newest stays, and no result is split
// from the call before it.
func splitIsSound(c *vectorCase, _, got any) string {
	var in stageInput
	c.into(&in)
	split := int(at(got, "splitIndex").(float64))
	switch {
	case len(in.Messages) <= 4 && split > 0:
		return "four messages are condensed"
	case split >= len(in.Messages):
		return "nothing stays"
	case split > 0 && at(parsed(in.Messages[split]), "role") == "tool_result":
		return "a result is split from its call"
	}
	return ""
}

// at is a member of an answer.
func at(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}

func listed(v any) []any {
	out, _ := at(v, "messages").([]any)
	return out
}

func rawOf(v any) []events.Raw {
	var out []events.Raw
	for _, m := range listed(v) {
		raw, err := events.Marshal(m)
		if err != nil {
			panic(err)
		}
		out = append(out, raw)
	}
	return out
}

func violations(got any) string {
	if bad := validate.Messages(events.NeuroLink, rawOf(got)); len(bad) > 0 {
		return fmt.Sprintf("not valid: %v", bad)
	}
	return ""
}

// outOfOrder finds a message that stands before one it came after.
func outOfOrder(before []events.Raw, after []any) string {
	place := map[any]int{}
	for i, raw := range before {
		if id := at(parsed(raw), "id"); id != nil {
			place[id] = i
		}
	}
	last := -1
	for _, m := range after {
		i, came := place[at(m, "id")]
		if came && i < last {
			return fmt.Sprintf("%v is out of order", at(m, "id"))
		}
		if came {
			last = i
		}
	}
	return ""
}

// firstUser reports the loss of the first user's message, unless a summary stands
// for it.
func firstUser(before []events.Raw, after []any) string {
	for _, raw := range before {
		m := parsed(raw)
		if at(m, "role") != "user" || isBlank(m) {
			continue
		}
		if slices.ContainsFunc(after, func(x any) bool { return at(x, "id") == at(m, "id") }) || summarized(map[string]any{"messages": after}) {
			return ""
		}
		return "the first user's message is gone"
	}
	return ""
}

// summarized reports whether a summary of ours is among the messages.
func summarized(v any) bool {
	return slices.ContainsFunc(listed(v), func(m any) bool {
		text, _ := at(m, "content").(string)
		return at(m, "role") == "user" && strings.Contains(text, "<condensed-summary>")
	})
}
