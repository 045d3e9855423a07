package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/validate"
)

// P17: a large call behind a summary or in the first exchange does not keep a session above
// its window once it is answered.
func TestLargeCallIsCompacted(t *testing.T) {
	arguments := map[string]string{
		"one string":   fmt.Sprintf(`{"path":"/src/a.go","content":%q}`, strings.Repeat("x := compute(y) // a line\n", 2200)),
		"many strings": fmt.Sprintf(`{"edits":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"old":"a := 1","new":"b := 2"},`, 1800), ",")),
		"numbers":      fmt.Sprintf(`{"values":[%s]}`, strings.TrimSuffix(strings.Repeat("31415,", 9500), ",")),
		"escapes":      fmt.Sprintf(`{"text":%q}`, strings.Repeat("\"\\\n\t", 14000)),
	}
	for name, args := range arguments {
		for _, f := range []events.Format{events.Anthropic, events.OpenAI, events.NeuroLink} {
			for _, at := range []int{0, 31} { // exchanges before the call
				t.Run(fmt.Sprintf("%s/%s/%d", name, f, at), func(t *testing.T) { largeCall(t, f, at, args) })
			}
		}
	}
}

func largeCall(t *testing.T, f events.Format, before int, args string) {
	a := newAgent(t, defaultConfig(t))
	model := object{"provider": "openai", "context_window": 20_000}
	n := 0
	publish := func(list ...said) []compaction.Outcome {
		n++
		return a.publish(object{"turn": n, "format": f, "model": model, "messages": messages(f, list...), "generation": a.ledger.Generation()})
	}
	within := func() {
		t.Helper()
		b := a.ledger.Budget()
		if !b.WithinBudget {
			t.Fatalf("turn %d: %d of %d tokens", n, b.EstimatedInput, b.AvailableInput)
		}
		view, _, _ := a.ledger.View()
		rendered, err := a.render(view)
		if err != nil {
			t.Fatal(err)
		}
		if v := validate.Messages(f, rendered); len(v) > 0 {
			t.Fatalf("turn %d: %v", n, v)
		}
	}
	text := strings.Repeat("Words of the conversation go here. ", 74)
	publish(said{role: events.RoleUser, text: "Please write the files."})
	for range before {
		publish(said{role: events.RoleAssistant, text: text}, said{role: events.RoleUser, text: "Go on."})
		within()
	}
	publish(said{role: events.RoleAssistant, calls: []call{{"call-1", "write", args}}})
	a.seq++
	refused := compaction.ReadOverflow(compaction.Overflow{Generation: -1}, "", a.seq)
	compaction.Apply(a.ledger, refused, compaction.Decide(a.ledger, refused, a.config), a.config)
	publish(said{role: events.RoleTool, results: []result{{id: "call-1", tool: "write", text: "ok"}}})
	for range 40 {
		publish(said{role: events.RoleAssistant, text: "Done."}, said{role: events.RoleUser, text: "Next, please: " + text[:200]})
		within()
	}
}
