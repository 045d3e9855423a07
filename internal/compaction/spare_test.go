package compaction_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/stored"
	"compactd/internal/testkit/figures"
)

// spareText is the spare line of a number.
func spareText(i int) string { return fmt.Sprintf("func nodeList%d() is in src/list%d.go", i, i) }

// withSpare is the answer to a job, with spare lines of its first message.
func withSpare(job *events.Job, lines int) *events.Summary {
	s := summary(job.ID, 600)
	s.Record = []events.RecordLine{{Kind: events.RecordUser, Text: "fix it", Turns: [2]int64{1, 1}}}
	for i := range lines {
		s.Spare = append(s.Spare, events.SpareLine{Position: job.From, Text: spareText(i)})
	}
	return s
}

// keeping is a session whose agent uses identifiers while its summaries wait.
type keeping struct {
	*agent
	lines         int // of each summary
	missing, kept int64
	swaps         int
	lastView      []codec.Raw
	rows          map[string]compaction.Row
}

// work publishes a round in which the agent names identifiers.
func (k *keeping) work(i, size int, names ...string) {
	k.outcomes(k.publish(naming(i, size, names...)))
}

func naming(i, size int, names ...string) object {
	id := fmt.Sprintf("c%d", i)
	turn := object{"messages": messages(events.Anthropic,
		msg{role: dialect.RoleUser, text: strings.Repeat("go on ", size)},
		msg{role: dialect.RoleAssistant, text: "I look.", calls: []call{{id: id, tool: "bash", args: fmt.Sprintf(`{"command":"grep %s"}`, strings.Join(names, " "))}}},
		msg{role: dialect.RoleTool, results: []result{{id: id, tool: "bash", text: "nothing"}}},
		msg{role: dialect.RoleAssistant, text: "Nothing."})}
	if i == 0 {
		turn["model"] = object{"provider": "anthropic", "context_window": 20_000, "max_output_tokens": 2_000}
	}
	return turn
}

// outcomes answers jobs, and checks what a swap keeps.
func (k *keeping) outcomes(outs []compaction.Outcome) {
	k.t.Helper()
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Job:
			r := k.result(withSpare(b, k.lines))
			k.restart()
			more, next := compaction.Decide(k.ledger, r, k.config)
			next.Install(k.ledger)
			k.outcomes(more)
		case *events.Compacted:
			if b.Compacted {
				k.swap(b, o.View)
			}
		}
	}
}

// swap checks that a message of a summary holds the lines that its edit names, and costs no more than that states.
func (k *keeping) swap(b *events.Compacted, v *render.View) {
	k.t.Helper()
	view, err := k.render(v)
	if err != nil {
		k.t.Fatal(err)
	}
	k.lastView = view
	for _, s := range b.Stages {
		k.missing, k.kept = k.missing+s.LinesMissing, k.kept+s.LinesKept
	}
	i := slices.IndexFunc(b.Edits, func(e events.Edit) bool { return e.Op == events.OpCondense })
	if i < 0 {
		return
	}
	k.swaps++
	edit := &b.Edits[i]
	at := slices.IndexFunc(view, func(raw codec.Raw) bool { return strings.Contains(string(raw), events.SummaryOpen) })
	m, err := events.Anthropic.ReadAll(view[at : at+1])
	if err != nil {
		k.t.Fatal(err)
	}
	text := m[0].Parts[0].Text
	for line := range k.lines {
		if has := strings.Contains(text, spareText(line)+"\n"); has != slices.Contains(edit.Spare, int64(line)) {
			k.t.Fatalf("line %d is in the message: %t, of %v\n%s", line, has, edit.Spare, text)
		}
	}
	if size := (measure.Meter{}).Text(text); max(size.Units, size.Base*measure.SummaryUnits) > edit.Units {
		k.t.Fatalf("the message has %d units and %d tokens, the edit states %d", size.Units, size.Base, edit.Units)
	}
	if len(edit.Spare) > 0 && b.TokensAfter > b.TargetTokens {
		k.t.Fatalf("%d tokens after, target %d: %v", b.TokensAfter, b.TargetTokens, b.Notes)
	}
}

// restart stores the ledger and reads it again: the view stays as it is.
func (k *keeping) restart() {
	k.t.Helper()
	rows, err := stored.Rows(k.ledger)
	if err != nil {
		k.t.Fatal(err)
	}
	if k.rows == nil {
		k.rows = map[string]compaction.Row{}
	}
	for _, r := range rows { // those that changed since
		k.rows[r.Name] = r
	}
	again, err := stored.ReadLedger(k.ledger.Address, slices.Collect(maps.Values(k.rows)))
	if err != nil {
		k.t.Fatal(err)
	}
	again.Budget()
	k.ledger = again
}

// A line of the range comes into the message of its summary where the agent named an identifier of it since
// the summary was requested, and only then.
func TestLinesInUse(t *testing.T) {
	k := &keeping{agent: newAgent(t, defaultConfig(t)), lines: 4}
	for i := 0; k.swaps == 0; i++ {
		if i == 60 {
			t.Fatal("no summary was used")
		}
		names := []string{"x"}
		if k.ledger.Header().Prepared != nil {
			names = []string{"nodeList2"}
		}
		k.work(i, 170, names...)
	}
	if k.missing != 1 || k.kept != 1 {
		t.Errorf("%d lines missing, %d kept, want 1 and 1", k.missing, k.kept)
	}
	before := k.lastView
	k.restart()
	k.work(61, 1, "x")
	after, err := k.render(k.ledger.View())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(after[:len(before)]), lines(before); got != want {
		t.Errorf("the view after a restart:\n%swant\n%s", got, want)
	}
}

// A line is not in use by a turn that was taken back.
func TestLinesOfReplacedTurns(t *testing.T) {
	k := &keeping{agent: newAgent(t, defaultConfig(t)), lines: 4}
	replaced := false
	for i := 0; k.swaps == 0; i++ {
		if i == 60 {
			t.Fatal("no summary was used")
		}
		k.work(i, 170, "x")
		if k.ledger.Header().Prepared == nil || replaced {
			continue
		}
		replaced = true
		k.work(100, 1, "nodeList2")
		instead := naming(101, 1, "x")
		instead["replaces_from"] = k.ledger.LastTurn()
		k.outcomes(k.publish(instead))
	}
	if !replaced || k.missing != 0 {
		t.Errorf("replaced %v, %d lines missing, want true and 0", replaced, k.missing)
	}
}

// Whatever the agent names, whenever the ledger is read again: the message has the lines that its edit names, in
// its units, and no view is above its target for them.
func TestAnyLinesInUse(t *testing.T) {
	var swaps, kept int
	c := defaultConfig(t)
	rapid.Check(t, func(t *rapid.T) {
		k := &keeping{agent: newAgent(t, c), lines: rapid.IntRange(0, events.MaxSpare).Draw(t, "lines")}
		for i := range rapid.IntRange(20, 50).Draw(t, "turns") {
			var names []string
			for range rapid.IntRange(0, 3).Draw(t, "names") {
				names = append(names, fmt.Sprintf("nodeList%d", rapid.IntRange(0, events.MaxSpare).Draw(t, "name")))
			}
			k.work(i, rapid.IntRange(1, 500).Draw(t, "size"), names...)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				k.restart()
			}
		}
		if k.kept > k.missing {
			t.Fatalf("%d lines kept of %d", k.kept, k.missing)
		}
		swaps, kept = swaps+k.swaps, kept+int(k.kept)
	})
	if swaps == 0 || kept == 0 {
		t.Fatalf("%d swaps, %d lines kept", swaps, kept)
	}
	figures.Print(t, "C11", "swaps", swaps, "lines_kept", kept)
}
