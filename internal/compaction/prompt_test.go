package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// B7: the prompt that the agent works on stays, whatever the sizes of the calls since, and of all before it.
func TestLastPromptStays(t *testing.T) {
	hidden := 0
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom(events.Formats()).Draw(t, "format")
		size := func(name string) string {
			return strings.Repeat("line of text ", rapid.IntRange(0, 4000).Draw(t, name))
		}
		var history []msg
		for range rapid.IntRange(1, 4).Draw(t, "exchanges") {
			history = append(history, msg{role: dialect.RoleUser, text: "Question " + size("question")},
				msg{role: dialect.RoleAssistant, text: "Answer " + size("answer")})
		}
		const prompt = "Fix the retry, and leave the other file as it is."
		history = append(history, msg{role: dialect.RoleUser, text: prompt + size("prompt")})
		for i := range rapid.IntRange(1, 6).Draw(t, "steps") {
			id := fmt.Sprint("c", i)
			history = append(history, msg{role: dialect.RoleAssistant, calls: []call{{id, "bash", `{"command":"x"}`}}},
				msg{role: dialect.RoleTool, results: []result{{id: id, tool: "bash", text: "Result " + size("result")}}})
		}
		msgs, err := format.ReadAll(messages(format, history...))
		if err != nil {
			t.Fatal(err)
		}
		p := withoutSummaries()
		target := measure.Tokens(rapid.Int64Range(500, 60_000).Draw(t, "target"))
		plan := makePlan(measured(msgs), format, measure.NewRate(measure.Profiles["default"], ""), &p, 2*target, target)
		got, _, err := render.Render(planView(plan, format), func(measure.Seq) ([]dialect.Message, error) { return msgs, nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(got) < len(msgs) {
			hidden++
		}
		if !strings.Contains(fmt.Sprintf("%s", got), prompt) {
			t.Fatalf("the prompt is gone: %.300s", got)
		}
	})
	if hidden == 0 {
		t.Error("no history was truncated")
	}
}
