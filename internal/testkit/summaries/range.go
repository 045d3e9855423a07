package summaries

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
)

// MessageOf is a message of one text.
func MessageOf(turn int64, role dialect.Role, text string) summarize.Message {
	return summarize.Message{Turn: turn, Message: dialect.Message{Role: role, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}}
}

// BusyRange is a range with something for every section, all of it new.
func BusyRange(generation, messages int) []summarize.Message {
	var out []summarize.Message
	add := func(role dialect.Role, parts ...dialect.Part) {
		turn := int64(generation*messages + len(out) + 1)
		out = append(out, summarize.Message{Turn: turn, Message: dialect.Message{Role: role, Parts: parts}})
	}
	for i := range messages / 3 {
		n := fmt.Sprintf("%d of range %d", i, generation)
		add(dialect.RoleUser, dialect.Part{Kind: dialect.PartText, Text: "Please do step " + n + ", then tell me how it went and what is left."})
		add(dialect.RoleAssistant,
			dialect.Part{Kind: dialect.PartText, Text: "I decided to do step " + n + " in two parts. It turns out that step " + n + " needs a lock.\n- [ ] open task " + n},
			dialect.Part{Kind: dialect.PartCall, CallID: n, Tool: "Write", Args: codec.Raw(fmt.Sprintf(`{"file_path":"/src/range%d/file%d.go"}`, generation, i))},
			dialect.Part{Kind: dialect.PartCall, CallID: n + "b", Tool: "Bash", Args: codec.Raw(fmt.Sprintf(`{"command":"make step%d-%d"}`, generation, i))})
		add(dialect.RoleUser,
			dialect.Part{Kind: dialect.PartResult, CallID: n, Text: "ok"},
			dialect.Part{Kind: dialect.PartResult, CallID: n + "b", Failed: true, Text: "error: step " + n + " failed"})
	}
	return out
}

// Messages reads lines of a script: a turn and a message in its dialect.
func Messages(t *testing.T, f events.Format, input string) []summarize.Message {
	t.Helper()
	var out []summarize.Message
	index := map[int64]int64{}
	for l := range strings.Lines(input) {
		Number, raw, _ := strings.Cut(strings.TrimSpace(l), " ")
		turn, err := strconv.ParseInt(Number, 10, 64)
		if err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		m, err := f.Read(codec.Raw(raw))
		if err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		out = append(out, summarize.Message{Turn: turn, Index: index[turn], Message: m})
		index[turn]++
	}
	return out
}
