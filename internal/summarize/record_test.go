package summarize_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
)

// busy is a range with more facts than a record holds: what a user wants, what an
// assistant decides, reads and changes, and what fails and is overcome, each turn.
func busy(first, turns int) []summarize.Message {
	var out []summarize.Message
	add := func(turn int, role events.Role, parts ...events.Part) {
		out = append(out, summarize.Message{Turn: int64(turn), Index: int64(len(out)), Message: events.Message{Role: role, Parts: parts}})
	}
	for n := first; n < first+turns; n++ {
		call := func(id, tool, args string) events.Part {
			return events.Part{Kind: events.PartCall, CallID: fmt.Sprint(id, n), Tool: tool, Args: events.Raw(args)}
		}
		result := func(id, text string, failed bool) events.Part {
			return events.Part{Kind: events.PartResult, CallID: fmt.Sprint(id, n), Text: text, Failed: failed}
		}
		add(n, events.RoleUser, events.Part{Kind: events.PartText, Text: fmt.Sprintf("wish %d: ", n) + strings.Repeat("make it better. ", 30)})
		add(n, events.RoleAssistant,
			events.Part{Kind: events.PartText, Text: fmt.Sprintf("I decided to go with plan %d instead of the other one.", n)},
			call("r", "Read", fmt.Sprintf(`{"file_path":"/repo/read/%d.go"}`, n)),
			call("w", "Write", fmt.Sprintf(`{"file_path":"/repo/changed/%d.go"}`, n)),
			call("f", "Bash", fmt.Sprintf(`{"command":"make part%d"}`, n)))
		add(n, events.RoleUser, result("r", "ok", false), result("w", "ok", false), result("f", fmt.Sprintf("part %d is broken", n), true))
		add(n, events.RoleAssistant, call("g", "Bash", fmt.Sprintf(`{"command":"make part%d"}`, n)))
		add(n, events.RoleUser, result("g", "ok", false))
	}
	return out
}

// A record has bounds of its own, whatever room there is, and gives up what can be
// missed before what cannot (C6).
func TestRecordBounds(t *testing.T) {
	const room = 200_000
	in := summarize.Input{Format: events.Anthropic, Messages: busy(1, 20), MaxUnits: room}
	one := extract.Record(in)
	checkRecord(t, one, 7_000)
	next := extract.Record(summarize.Input{
		Format: events.Anthropic, Messages: busy(21, 15), MaxUnits: room,
		Previous: &events.Summary{Text: "x", Record: one},
	})
	checkRecord(t, next, 11_200)
	kinds := map[events.RecordKind]int{}
	for _, l := range one {
		kinds[l.Kind]++
	}
	if kinds[events.RecordUser] != 20 || kinds[events.RecordPathChanged] != 20 || kinds[events.RecordFailure] != 20 {
		t.Errorf("of 20 each, the record has %v", kinds)
	}
	if kinds[events.RecordDecision] == 20 {
		t.Error("everything fits: the test shows nothing")
	}
}

func checkRecord(t *testing.T, record []events.RecordLine, most int) {
	t.Helper()
	n := 0
	for _, l := range record {
		n += events.Units("- " + l.String() + "\n")
	}
	if n > most || n < most/2 {
		t.Errorf("%d units of at most %d", n, most)
	}
}
