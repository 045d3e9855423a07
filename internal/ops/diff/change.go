package diff

import (
	"slices"
	"strconv"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/dialect"
)

// Change is a history before and after a compaction.
type Change struct {
	// Title states which compaction it is.
	Title         string
	Before, After []dialect.Message
	// TokensBefore and TokensAfter are the published sizes of the whole inputs, by the provider's count
	// where it is known. Where they are 0, Count gives the sums.
	TokensBefore, TokensAfter int64
	// Count estimates messages, in tokens.
	Count func(...dialect.Message) int64
	// Recall is the command that prints the removed message; "" without one.
	Recall string
}

// Saved is the saving of the compaction, in tokens of the published history.
func (c *Change) Saved() int64 { return c.TokensBefore - c.TokensAfter }

// Action is the change of a message by the compaction.
type Action string

// The actions. The last two are of messages that stand in the place of others.
const (
	Kept         Action = "kept"
	Cleared      Action = "cleared"
	Deduplicated Action = "deduplicated"
	Shortened    Action = "shortened"
	Summarized   Action = "summarized"
	Truncated    Action = "truncated"
	Summary      Action = "the summary"
	Marker       Action = "the marker"
	Added        Action = "added"
)

// Line is a message that was there before, or stands there after, or both.
type Line struct {
	Action        Action
	Before, After *dialect.Message
}

// Lines pairs the messages before with those after, in order.
func Lines(before, after []dialect.Message) []Line {
	var out []Line
	before = split(before)
	after = part(before, split(after))
	last := len(before)
	pairs := make([]int, len(after)) // by message after: the one before, or -1
	keys := make([]string, len(before))
	for i := range before {
		keys[i] = key(&before[i])
	}
	for k := len(after) - 1; k >= 0; k-- { // kept messages are mostly at the end
		pairs[k] = lastIndex(keys[:last], key(&after[k]))
		if pairs[k] >= 0 {
			last = pairs[k]
		}
	}
	next := 0
	for k := 0; k < len(after); {
		var added []Line
		for ; k < len(after) && pairs[k] < 0; k++ {
			added = append(added, Line{Action: actionOfNew(&after[k]), After: &after[k]})
		}
		end := len(before)
		if k < len(after) {
			end = pairs[k]
		}
		for ; next < end; next++ {
			out = append(out, Line{Action: went(added), Before: &before[next]})
		}
		out = append(out, added...)
		if k < len(after) {
			out = append(out, Line{Action: action(&before[next], &after[k]), Before: &before[next], After: &after[k]})
			next++
			k++
		}
	}
	for ; next < len(before); next++ {
		out = append(out, Line{Action: Truncated, Before: &before[next]})
	}
	return out
}

// split takes a summary or marker out of a message that it was merged with.
func split(messages []dialect.Message) []dialect.Message {
	var out []dialect.Message
	for _, m := range messages {
		isPlaceholder := func(p dialect.Part) bool {
			return actionOfNew(&dialect.Message{Parts: []dialect.Part{p}}) != Added
		}
		n := 0
		for n < len(m.Parts) && isPlaceholder(m.Parts[n]) {
			n++
		}
		if n > 0 && n < len(m.Parts) {
			out = append(out, dialect.Message{Role: m.Role, Parts: m.Parts[:n]})
			m = dialect.Message{Role: m.Role, Parts: m.Parts[n:]}
		}
		out = append(out, m)
	}
	return out
}

// part takes messages apart that several before were merged into, by the ids of their
// results.
func part(before, after []dialect.Message) []dialect.Message {
	owner := map[string]int{}
	for i, m := range before {
		for _, p := range m.Parts {
			if p.Kind == dialect.PartResult && p.CallID != "" {
				owner[p.CallID] = i
			}
		}
	}
	var out []dialect.Message
	for _, m := range after {
		from, of := 0, -1
		for k, p := range m.Parts {
			i, known := owner[p.CallID]
			if p.Kind != dialect.PartResult || !known {
				continue
			}
			if of >= 0 && i != of {
				out = append(out, dialect.Message{Role: m.Role, Parts: m.Parts[from:k]})
				from = k
			}
			of = i
		}
		if from > 0 {
			m = dialect.Message{Role: m.Role, Parts: m.Parts[from:]}
		}
		out = append(out, m)
	}
	return out
}

func lastIndex(keys []string, key string) int {
	for i, k := range slices.Backward(keys) {
		if k == key {
			return i
		}
	}
	return -1
}

// key is the same for a message before and after an edit: its role, and the ids of its
// calls and results where it has any, else its texts.
func key(m *dialect.Message) string {
	ids, texts := []string{string(m.Role)}, []string{string(m.Role)}
	for _, p := range m.Parts {
		texts = append(texts, p.Text, p.Tool, string(p.Args))
		if p.CallID != "" {
			ids = append(ids, strconv.Itoa(int(p.Kind)), p.CallID)
		}
	}
	if len(ids) > 1 {
		return strings.Join(ids, "\x00")
	}
	return strings.Join(texts, "\x00")
}

// text is all of a message.
func text(m *dialect.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text + "\n")
	}
	return b.String()
}

// action compares a message with what it became.
func action(before, after *dialect.Message) Action {
	out := Kept
	for k := range min(len(before.Parts), len(after.Parts)) {
		is := after.Parts[k].Text
		switch {
		case before.Parts[k].Text == is:
		case strings.HasPrefix(is, measure.ClearText), strings.HasPrefix(is, measure.ClearOldText):
			return Cleared
		case strings.HasPrefix(is, "[File ") && strings.Contains(is, " - refer to latest read below]"):
			out = Deduplicated
		case out == Kept:
			out = Shortened
		}
	}
	return out
}

// actionOfNew is the action of a message that is new.
func actionOfNew(m *dialect.Message) Action {
	for _, p := range m.Parts {
		switch {
		case p.Kind != dialect.PartText:
		case strings.Contains(p.Text, "\n<condensed-summary>\n"):
			return Summary
		case strings.HasPrefix(p.Text, measure.TruncateText):
			return Marker
		}
	}
	return Added
}

// went is the action of messages in whose place others stand.
func went(by []Line) Action {
	if slices.ContainsFunc(by, func(l Line) bool { return l.Action == Summary }) {
		return Summarized
	}
	return Truncated
}
