package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/linear"
)

func wordsOf(turn int, role dialect.Role, text string) summarize.Message {
	return summarize.Message{Turn: int64(turn), Message: dialect.Message{Role: role, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}}
}

// ranges are messages with so many facts of a kind, of which a record has no room for most.
var ranges = map[string]func(n int) []summarize.Message{
	"users": func(n int) (out []summarize.Message) {
		for i := range n {
			out = append(out, wordsOf(1+2*i, dialect.RoleUser, fmt.Sprintf("Fix number %d of the list, please.", i)))
		}
		return out
	},
	"instructions": func(n int) (out []summarize.Message) {
		for i := range n {
			out = append(out, wordsOf(1+2*i, dialect.RoleSystem, fmt.Sprintf("Instruction %d of the agent.", i)))
		}
		return out
	},
	"files": func(n int) []summarize.Message {
		var line strings.Builder
		for i := range n {
			fmt.Fprintf(&line, " f%06d", i)
		}
		call := dialect.Part{Kind: dialect.PartCall, Tool: "bash", CallID: "1", Args: codec.Raw(`{"command":"touch` + line.String() + `"}`)}
		return []summarize.Message{wordsOf(1, dialect.RoleUser, "Make the files."), {Turn: 1, Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{call}}}}
	},
	"failures": func(n int) (out []summarize.Message) {
		for i := range n {
			id := fmt.Sprint(i)
			call := dialect.Part{Kind: dialect.PartCall, Tool: "bash", CallID: id, Args: codec.Raw(fmt.Sprintf(`{"command":"make x%d"}`, i))}
			result := dialect.Part{Kind: dialect.PartResult, CallID: id, Failed: true, Text: "Error: no rule"}
			out = append(out, summarize.Message{Turn: int64(1 + 2*i), Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{call}}},
				summarize.Message{Turn: int64(1 + 2*i), Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{result}}})
		}
		return out
	},
}

// A fact that a record has no room for costs as much among many as among few.
func TestRecordLinear(t *testing.T) {
	const n, most = 1000, 2.5
	for name, of := range ranges {
		var digests [2]*extract.Digest
		for size, n := range []int{n, 4 * n} {
			digests[size] = extract.Scan(&summarize.Input{MaxUnits: 20_000, Messages: of(n)})
		}
		r := linear.RatioOf(n, most, func(size int) linear.Cost {
			return linear.Of(1, func() { digests[size].Record(20_000) })
		})
		if r.Worst() > most {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// An element costs as much in a long message as in a short one.
func TestUserTextLinear(t *testing.T) {
	const n, most = 4000, 2.5
	name := func(i int) string { // of letters
		return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprintf("%05d", i)) + "-hook"
	}
	for form, of := range map[string]func(i int) string{
		"open":     func(i int) string { return "<" + name(i) + ">\n" },
		"closed":   func(i int) string { return "<" + name(i) + "></" + name(i) + ">\n" },
		"backward": func(i int) string { return "</" + name(i) + ">\n<" + name(i) + ">\n" },
		"one name": func(int) string { return "<a-hook>\n" },
	} {
		var texts [2]string
		for size, n := range []int{n, 4 * n} {
			var b strings.Builder
			for i := range n {
				b.WriteString(of(i))
			}
			texts[size] = b.String()
		}
		r := linear.RatioOf(n, most, func(size int) linear.Cost {
			return linear.Of(1, func() { extract.UserText(texts[size]) })
		})
		if r.Worst() > most {
			t.Errorf("%s: %v", form, r)
		}
	}
}
