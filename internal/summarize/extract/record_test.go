package extract_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/summaries"
)

// busy is a range with more facts than a record holds: what a user wants, what an
// assistant decides, reads and changes, and what fails and is overcome, each turn.
func busy(first, turns int) []summarize.Message {
	var out []summarize.Message
	add := func(turn int, role dialect.Role, parts ...dialect.Part) {
		out = append(out, summarize.Message{Turn: int64(turn), Index: int64(len(out)), Message: dialect.Message{Role: role, Parts: parts}})
	}
	for n := first; n < first+turns; n++ {
		call := func(id, tool, args string) dialect.Part {
			return dialect.Part{Kind: dialect.PartCall, CallID: fmt.Sprint(id, n), Tool: tool, Args: codec.Raw(args)}
		}
		result := func(id, text string, failed bool) dialect.Part {
			return dialect.Part{Kind: dialect.PartResult, CallID: fmt.Sprint(id, n), Text: text, Failed: failed}
		}
		add(n, dialect.RoleUser, dialect.Part{Kind: dialect.PartText, Text: fmt.Sprintf("wish %d: ", n) + strings.Repeat("make it better. ", 30)})
		add(n, dialect.RoleAssistant,
			dialect.Part{Kind: dialect.PartText, Text: fmt.Sprintf("I decided to go with plan %d instead of the other one.", n)},
			call("r", "Read", fmt.Sprintf(`{"file_path":"/repo/read/%d.go"}`, n)),
			call("w", "Write", fmt.Sprintf(`{"file_path":"/repo/changed/%d.go"}`, n)),
			call("f", "Bash", fmt.Sprintf(`{"command":"make part%d"}`, n)))
		add(n, dialect.RoleUser, result("r", "ok", false), result("w", "ok", false), result("f", fmt.Sprintf("part %d is broken", n), true))
		add(n, dialect.RoleAssistant, call("g", "Bash", fmt.Sprintf(`{"command":"make part%d"}`, n)))
		add(n, dialect.RoleUser, result("g", "ok", false))
	}
	return out
}

// A record has bounds of its own, whatever room there is, and gives up what can be
// missed before what cannot (C6).
func TestRecordBounds(t *testing.T) {
	const room = 200_000
	in := summarize.Input{Messages: busy(1, 20), MaxUnits: room}
	one := summarizetest.Record(in)
	checkRecord(t, one, 7_000)
	next := summarizetest.Record(summarize.Input{
		Messages: busy(21, 15), MaxUnits: room,
		Previous: &events.Summary{Text: "x", Record: one},
	})
	checkRecord(t, next, 12_500)
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

// A record has a fold for items without room: one line for each kind names its turns, whatever
// the number of summaries, and of each kind the newest are there word by word (C3, C6).
func TestFolds(t *testing.T) {
	const turns = 20
	var previous *events.Summary
	for first := 1; first <= 15*turns; first += turns {
		in := summarize.Input{Messages: busy(first, turns), MaxUnits: 12_000, Previous: previous}
		previous = &events.Summary{Text: "x", Record: summarizetest.Record(in)}
		checkRecord(t, previous.Record, 8_520)
		for _, k := range []struct {
			kind events.RecordKind
			text string // of the line of a turn
		}{{events.RecordUser, "wish %d: "}, {events.RecordPathChanged, "/repo/changed/%d.go"}, {events.RecordFailure, "`make part%d`"}} {
			verbatim, folds := 0, 0
			for n := 1; n < first+turns; n++ {
				has, named := false, false
				for _, l := range previous.Record {
					has = has || l.Kind == k.kind && strings.Contains(l.Text, fmt.Sprintf(k.text, n))
					named = named || l.Kind == k.kind && names(l.Text, n)
				}
				if verbatim += one(has); !has && !named {
					t.Errorf("after turn %d the %s of turn %d is neither there nor named", first+turns-1, k.kind, n)
				}
				if n > first+turns-4 && !has {
					t.Errorf("after turn %d the %s of turn %d is not there", first+turns-1, k.kind, n)
				}
			}
			for _, l := range previous.Record {
				folds += one(l.Kind == k.kind && strings.Contains(l.Text, " more, recall turn"))
			}
			if full := verbatim < first+turns-1; folds != one(full) {
				t.Errorf("after turn %d there are %d lines for %d of the %s", first+turns-1, folds, first+turns-1-verbatim, k.kind)
			}
		}
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// names reports whether a line that stands for others names a turn.
func names(text string, turn int) bool {
	_, list, ok := strings.Cut(text, " more, recall turn")
	if !ok {
		return false
	}
	for span := range strings.SplitSeq(strings.TrimLeft(list, "s "), ", ") {
		var from, to int
		if n, _ := fmt.Sscanf(span, "%d-%d", &from, &to); n < 2 {
			to = from
		}
		if from <= turn && turn <= to {
			return true
		}
	}
	return false
}

// A result without a mark is a failure all the same, if its text begins like one.
func TestUnmarkedFailures(t *testing.T) {
	in := summarize.Input{MaxUnits: 8_000, Messages: []summarize.Message{
		{Turn: 1, Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: "book it"}}}},
		{Turn: 1, Index: 1, Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{{Kind: dialect.PartCall, CallID: "1", Tool: "book", Args: codec.Raw(`{"id":7}`)}}}},
		{Turn: 2, Message: dialect.Message{Role: dialect.RoleTool, Parts: []dialect.Part{{Kind: dialect.PartResult, CallID: "1", Text: "Error: no such flight"}}}},
	}}
	for _, l := range summarizetest.Record(in) {
		if l.Kind == events.RecordFailure && strings.Contains(l.Text, "Error: no such flight") {
			return
		}
	}
	t.Errorf("the record has no failure: %v", summarizetest.Record(in))
}

func checkRecord(t *testing.T, record []events.RecordLine, most int) {
	t.Helper()
	n := 0
	for _, l := range record {
		n += codec.Units("- " + l.String() + "\n")
	}
	if n > most || n < most/2 {
		t.Errorf("%d units of at most %d", n, most)
	}
}

// C6: files that harnesses read and change by a shell, a patch or an editor are in the record,
// relative ones too, and what only looks like a file is not.
func TestRecordOfShellAndPatches(t *testing.T) {
	var messages []summarize.Message
	for i, c := range []struct{ tool, args string }{
		{"bash", `{"command":"cat src/app.py && sed -i 's/a/b/' src/changed.py && pytest > out.log"}`},
		{"exec_command", `{"cmd":"head -20 README.md; mv docs/old.md docs/new.md","workdir":"/repo"}`},
		{"apply_patch", `"*** Begin Patch\n*** Update File: lib/a.rs\n@@\n*** Add File: lib/b.rs\n+x\n*** End Patch"`},
		{"str_replace_based_edit_tool", `{"command":"view","path":"/abs/viewed.go"}`},
		{"str_replace_based_edit_tool", `{"command":"insert","path":"/abs/inserted.go","insert_line":3}`},
		{"read_many_files", `{"paths":["m/one.ts","m/two.ts"]}`},
		{"bash", `{"command":"curl https://example.com/no.txt --max-time 5; grep -rn 'x > no.txt' . ; cat <<EOF\ncat no.txt\nEOF"}`},
	} {
		messages = append(messages, summarize.Message{Turn: int64(i + 1), Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{
			{Kind: dialect.PartCall, CallID: c.tool + string(rune('a'+i)), Tool: c.tool, Args: codec.Raw(c.args)},
		}}})
	}
	got := map[events.RecordKind][]string{}
	for _, r := range summarizetest.Record(summarize.Input{Messages: messages, MaxUnits: 20_000}) {
		got[r.Kind] = append(got[r.Kind], r.Text)
	}
	for _, all := range got {
		slices.Sort(all)
	}
	if diff := cmp.Diff([]string{"/abs/inserted.go", "docs/new.md", "docs/old.md", "lib/a.rs", "lib/b.rs", "out.log", "src/changed.py"}, got[events.RecordPathChanged]); diff != "" {
		t.Errorf("changed: %s", diff)
	}
	if diff := cmp.Diff([]string{"/abs/viewed.go", "README.md", "m/one.ts", "m/two.ts", "src/app.py"}, got[events.RecordPathRead]); diff != "" {
		t.Errorf("read: %s", diff)
	}
}

// An agent without tools writes its command into its words, and the next message has the output.
func TestRecordOfShellBlocks(t *testing.T) {
	add := func(turn int64, role dialect.Role, text string) summarize.Message {
		return summarize.Message{Turn: turn, Message: dialect.Message{Role: role, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}}
	}
	record := summarizetest.Record(summarize.Input{MaxUnits: 20_000, Messages: []summarize.Message{
		add(1, dialect.RoleUser, "Fix it."),
		add(2, dialect.RoleAssistant, "THOUGHT: look.\n\n```bash\ncat src/a.py && sed -i 's/x/y/' src/b.py\n```"),
		add(3, dialect.RoleUser, "<returncode>0</returncode>\n<output>\nx\n</output>"),
		add(4, dialect.RoleAssistant, "```mswea_bash_command\ncat src/missing.py\n```"),
		add(5, dialect.RoleUser, "<returncode>1</returncode>\n<output>\ncat: src/missing.py: No such file or directory\n</output>"),
		add(6, dialect.RoleAssistant, "You could run this:\n```bash\nrm src/c.py\n```"),
		add(7, dialect.RoleUser, "No, I will not."),
	}})
	if !summaries.HasLine(record, events.RecordPathRead, "src/a.py") || !summaries.HasLine(record, events.RecordPathChanged, "src/b.py") {
		t.Errorf("files are missing: %s", summaries.RecordText(record))
	}
	for _, r := range record {
		if (r.Kind == events.RecordPathRead || r.Kind == events.RecordPathChanged) && (r.Text == "src/missing.py" || r.Text == "src/c.py") {
			t.Errorf("%+v was not there", r)
		}
	}
}

// A record keeps to its room also where the folds of dropped instructions make it drop more.
func TestFoldsKeepTheRoom(t *testing.T) {
	const most = 7_000 // of a first record
	for n := range 80 {
		in := summarize.Input{}
		for i := range n {
			in.Messages = append(in.Messages,
				wordsOf(1+4*i, dialect.RoleSystem, fmt.Sprintf("Instruction %d %s", i, strings.Repeat("of the agent ", 5*(i%9)))),
				wordsOf(3+4*i, dialect.RoleUser, fmt.Sprintf("Look at number %d of the list, please.", i)))
		}
		units := 0
		for _, r := range extract.Scan(&in).Record(20_000) {
			units += summarize.RecordCost(r)
		}
		if units > most {
			t.Errorf("%d of each: %d units", n, units)
		}
	}
}
