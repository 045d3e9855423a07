package stage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/reference"
)

// Checks of our answer where it is not the recorded one. Each check looks at
// the answer alone, and returns what is wrong with it, "" if nothing is.

// dedupeIsSound: only results of tools refer to a later read, each to one of the
// same path that is whole.
func dedupeIsSound(c *reference.Case, _, got any) string {
	var in stageInput
	c.Into(&in)
	messages := reference.Messages(got)
	if len(messages) != len(in.Messages) {
		return fmt.Sprintf("%d messages of %d", len(messages), len(in.Messages))
	}
	for i, m := range messages {
		if came(in.Messages, m) {
			continue
		}
		path, ok := strings.CutPrefix(reference.At(m, "content").(string), "[File ")
		path, refers := strings.CutSuffix(path, " - refer to latest read below]")
		later := slices.ContainsFunc(messages[i+1:], func(x any) bool {
			text, _ := reference.At(x, "content").(string)
			return reference.At(x, "role") == "tool_result" && !strings.HasPrefix(text, "[File ") && strings.Contains(text, path)
		})
		if !ok || !refers || !later || reference.At(m, "role") != "tool_result" {
			return fmt.Sprintf("message %d refers to nothing: %v", i, reference.At(m, "content"))
		}
	}
	return ""
}

// repairIsSound: valid for its provider; nothing that came is lost or changed, and
// no more is made than in the record, if that is valid.
func repairIsSound(c *reference.Case, want, got any) string {
	var in stageInput
	c.Into(&in)
	if bad := violations(got); bad != "" {
		return bad
	}
	ours, record := slices.DeleteFunc(reference.Messages(got), isBlank), slices.DeleteFunc(reference.Messages(want), isBlank)
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
	text, isText := reference.At(m, "content").(string)
	return isText && strings.TrimSpace(text) == "" && (reference.At(m, "role") == "user" || reference.At(m, "role") == "assistant")
}

// worded are the messages that are not blank.
func worded(messages []codec.Raw) []codec.Raw {
	return slices.DeleteFunc(slices.Clone(messages), func(raw codec.Raw) bool { return isBlank(reference.Parsed(raw)) })
}

// came reports whether a message is among those that came, unchanged.
func came(messages []codec.Raw, m any) bool {
	return slices.ContainsFunc(messages, func(raw codec.Raw) bool { return reference.Mismatch(reference.Parsed(raw), m) == "" })
}

// historyIsSound: a compacted history that is never longer than it was, in order,
// with the first user's message, and within its target where the record is.
func historyIsSound(c *reference.Case, want, got any) string {
	var in stageInput
	c.Into(&in)
	r := c.Release.Rate(in.Config.Provider)
	if bad := outOfOrder(in.Messages, reference.Messages(got)); bad != "" {
		return bad
	}
	cost := func(v any) measure.Tokens { return reference.History(reference.RawMessages(v), r) }
	target := reference.Or(in.Config.TargetTokens, in.TargetTokens)
	switch ours, record := cost(got), cost(want); {
	case ours > reference.History(in.Messages, r) && target > 0:
		return fmt.Sprintf("it grew to %d tokens", ours)
	case reference.Mismatch(reference.Parsed(c.Input).(map[string]any)["messages"], got.(map[string]any)["messages"]) == "" && record < reference.History(in.Messages, r) && target > 0:
		return "nothing was done"
	case target > 0 && record <= target && ours-lastUser(reference.Messages(got), r) > target && !summarized(got):
		return fmt.Sprintf("it costs %d of %d tokens; the record costs %d", ours, target, record)
	}
	if len(worded(in.Messages)) > 0 && len(reference.Messages(got)) == 0 {
		return "nothing is left"
	}
	return firstUser(in.Messages, reference.Messages(got))
}

// lastUser is the cost of the last message of the user, which stays until a later stage cuts its text.
func lastUser(messages []any, r measure.Rate) measure.Tokens {
	for _, m := range slices.Backward(messages) {
		if text, ok := reference.At(m, "content").(string); ok && reference.At(m, "role") == "user" {
			return r.Count(text)
		}
	}
	return 0
}

// compactedIsSound: a sound history that is valid for its provider.
func compactedIsSound(c *reference.Case, want, got any) string {
	if bad := historyIsSound(c, want, got); bad != "" {
		return bad
	}
	return violations(got)
}

// smallIsSound: a short history whose messages are all there, each with a content,
// and smaller than it was, unless a few words of each are too much for its target.
func smallIsSound(c *reference.Case, _, got any) string {
	var in stageInput
	c.Into(&in)
	r := c.Release.Rate(in.Config.Provider)
	target := reference.Or(in.Config.TargetTokens, in.TargetTokens)
	before, after := reference.History(in.Messages, r), reference.History(reference.RawMessages(got), r)
	fewest := r.PerConversation + measure.Tokens(len(in.Messages))*(r.PerMessage+r.Text(16))
	if after > before || after == before && (target == 0 || fewest <= target || floored(reference.Messages(got), after) != "") {
		return fmt.Sprintf("%d tokens of %d", after, before)
	}
	return sameMessages(in.Messages, reference.Messages(got))
}

// smallCompactIsSound: so is the whole answer, which is of the last stage, valid for
// its provider, and as large as it reports.
func smallCompactIsSound(c *reference.Case, want, got any) string {
	var in stageInput
	c.Into(&in)
	if bad := smallIsSound(c, want, got); bad != "" {
		return bad
	}
	reported, cost := reference.At(got, "tokensAfter").(float64), reference.History(reference.RawMessages(got), c.Release.Rate(in.Config.Provider))
	switch stages, _ := reference.At(got, "stagesUsed").([]any); {
	case len(stages) != 1 || stages[0] != string(events.StageTruncate):
		return fmt.Sprintf("stages are %v", stages)
	case float64(cost) > reported:
		return fmt.Sprintf("it costs %d tokens, and reports %v", cost, reported)
	}
	return violations(got)
}

// sameMessages reports a message that is gone, another or empty.
func sameMessages(before []codec.Raw, after []any) string {
	before, after = worded(before), slices.DeleteFunc(slices.Clone(after), isBlank)
	if len(after) != len(before) {
		return fmt.Sprintf("%d messages of %d", len(after), len(before))
	}
	for i, m := range after {
		was := reference.Parsed(before[i])
		if reference.At(m, "id") != reference.At(was, "id") || reference.At(m, "role") != reference.At(was, "role") {
			return fmt.Sprintf("message %d is another", i)
		}
		if reference.At(m, "content") == "" && reference.At(was, "content") != "" {
			return fmt.Sprintf("message %d is empty", i)
		}
	}
	return ""
}

// emergencyIsSound: every message in its place with a content, where it had one, and
// within what is available unless every content is down to its floor.
func emergencyIsSound(c *reference.Case, _, got any) string {
	var in emergencyInput
	c.Into(&in)
	messages, r := reference.Messages(got), c.Release.Rate(in.Provider)
	if bad := sameMessages(in.Messages, messages); bad != "" {
		return bad
	}
	if ours := reference.History(reference.RawMessages(got), r); ours > in.room() {
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
		text, isText := reference.At(m, "content").(string)
		if isText && reference.At(m, "role") != "system" && reference.Size(text) > contentFloor {
			return fmt.Sprintf("it costs %d tokens, and message %d has %d units", cost, i, reference.Size(text))
		}
	}
	return ""
}

// splitIsSound: of more than four messages the newest stays, and no result is split
// from the call before it.
func splitIsSound(c *reference.Case, _, got any) string {
	var in stageInput
	c.Into(&in)
	split := int(reference.At(got, "splitIndex").(float64))
	switch {
	case len(in.Messages) <= 4 && split > 0:
		return "four messages are condensed"
	case split >= len(in.Messages):
		return "nothing stays"
	case split > 0 && reference.At(reference.Parsed(in.Messages[split]), "role") == "tool_result":
		return "a result is split from its call"
	}
	return ""
}

func violations(got any) string {
	if bad := validate.Messages(events.NeuroLink, reference.RawMessages(got)); len(bad) > 0 {
		return fmt.Sprintf("not valid: %v", bad)
	}
	return ""
}

// outOfOrder finds a message that stands before one it came after.
func outOfOrder(before []codec.Raw, after []any) string {
	place := map[any]int{}
	for i, raw := range before {
		if id := reference.At(reference.Parsed(raw), "id"); id != nil {
			place[id] = i
		}
	}
	last := -1
	for _, m := range after {
		i, came := place[reference.At(m, "id")]
		if came && i < last {
			return fmt.Sprintf("%v is out of order", reference.At(m, "id"))
		}
		if came {
			last = i
		}
	}
	return ""
}

// firstUser reports the loss of the first user's message, unless a summary stands
// for it.
func firstUser(before []codec.Raw, after []any) string {
	for _, raw := range before {
		m := reference.Parsed(raw)
		if reference.At(m, "role") != "user" || isBlank(m) {
			continue
		}
		if slices.ContainsFunc(after, func(x any) bool { return reference.At(x, "id") == reference.At(m, "id") }) || summarized(map[string]any{"messages": after}) {
			return ""
		}
		return "the first user's message is gone"
	}
	return ""
}

// summarized reports whether a summary of ours is among the messages.
func summarized(v any) bool {
	return slices.ContainsFunc(reference.Messages(v), func(m any) bool {
		text, _ := reference.At(m, "content").(string)
		return reference.At(m, "role") == "user" && strings.Contains(text, "<condensed-summary>")
	})
}

// clearsShort reports whether the record made a result longer by clearing it.
func clearsShort(c *reference.Case, want, _ any) bool {
	var in stageInput
	c.Into(&in)
	return slices.ContainsFunc(in.Messages, shortResult) && reference.At(want, "pruned") == true
}

func shortResult(m codec.Raw) bool {
	text, _ := reference.At(reference.Parsed(m), "content").(string)
	return reference.At(reference.Parsed(m), "role") == "tool_result" && len(text) <= len(measure.ClearText)
}

func keepsShort(c *reference.Case, want, got any) string {
	var in stageInput
	c.Into(&in)
	ours, record := reference.Messages(got), reference.Messages(want)
	for i, m := range in.Messages {
		if shortResult(m) {
			record[i] = reference.Parsed(m)
		}
	}
	if reference.At(got, "tokensSaved").(float64) < reference.At(want, "tokensSaved").(float64) {
		return "less is saved"
	}
	return reference.Mismatch(record, ours)
}

// isLong reports whether a history has more than the four messages that are never
// truncated.
func isLong(c *reference.Case, _, _ any) bool {
	var in stageInput
	c.Into(&in)
	return len(in.Messages) > 4
}

// lacksBlanks: the same messages as in the record, but for blank ones.
func lacksBlanks(_ *reference.Case, want, got any) bool {
	record, ours := reference.Messages(want), reference.Messages(got)
	return slices.ContainsFunc(record, isBlank) &&
		reference.Mismatch(slices.DeleteFunc(slices.Clone(record), isBlank), slices.DeleteFunc(slices.Clone(ours), isBlank)) == ""
}

func isShort(c *reference.Case, want, got any) bool { return !isLong(c, want, got) }

func recordNeedsRepair(_ *reference.Case, want, _ any) bool {
	return reference.At(reference.At(want, "repaired"), "repaired") == true
}

// used applies to a record that used a stage.
func used(stage events.Stage) func(*reference.Case, any, any) bool {
	return func(_ *reference.Case, want, _ any) bool {
		stages, _ := reference.At(want, "stagesUsed").([]any)
		return slices.Contains(stages, any(string(stage)))
	}
}

// B7, B8, B9, B10: messages without a content are none to a provider, and are left out. Whatever
// else is in the history, our answer to it passes its checks beside a record that keeps them.
func TestEmptyMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2_000 {
		var messages []any
		for i := range 1 + r.IntN(9) {
			text := strings.Repeat("some words of it. ", r.IntN(30)*r.IntN(2))
			messages = append(messages, map[string]any{"id": fmt.Sprint("m", i), "role": []string{"user", "assistant"}[i%2], "content": text})
		}
		function := []string{"repairToolPairs", "truncateWithSlidingWindow", "ContextCompactor.compact", "emergencyContentTruncation"}[r.IntN(4)]
		input := map[string]any{"messages": messages}
		size := reference.History(reference.RawMessages(reference.Plain(input)), reference.Current.Rate(""))
		input["targetTokens"], input["config"] = size, map[string]any{"targetTokens": size}
		input["availableTokens"], input["breakdown"] = size, map[string]any{"conversationHistory": size}
		c := reference.NewCase(function, input, map[string]any{"messages": messages})
		got, want := suite.Answer(c), reference.Parsed(c.Want)
		rule := suite.Rule(c, want, got)
		if reference.Mismatch(reference.Messages(want), reference.Messages(got)) == "" || rule == nil {
			continue
		}
		if bad := rule.Check(c, want, got); bad != "" {
			t.Fatalf("%s by %s: %s\n%s", function, rule.Name(), bad, c.Input)
		}
	}
}
