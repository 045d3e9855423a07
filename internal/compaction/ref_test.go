package compaction_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// The member ref that an agent puts into a message comes back: on messages as they came, on
// edited ones, and, in a list, on one that was made of several.
func TestRefComesBack(t *testing.T) {
	for _, f := range []events.Format{events.OpenAI, events.Anthropic, events.Bedrock, events.Gemini, events.Responses, events.AISDK, events.NeuroLink} {
		t.Run(string(f), func(t *testing.T) {
			p := policy.Default()
			p.Summarize.Enabled = false
			config, err := compaction.NewConfig(p, measure.DefaultWindows())
			if err != nil {
				t.Fatal(err)
			}
			a := newAgent(t, config)
			provider, sent := "mistral", 0 // chat messages of one role are joined
			if f != events.OpenAI {
				provider = string(f)
			}
			for n := 1; n <= 12; n++ {
				var turn []codec.Raw
				for _, raw := range messages(f,
					msg{role: dialect.RoleUser, text: fmt.Sprintf("Step %d: %s", n, strings.Repeat("words of the user ", 20))},
					msg{role: dialect.RoleUser, text: "and one more"},
					msg{role: dialect.RoleAssistant, calls: []call{{fmt.Sprint("call", n), "read", `{"path":"/a.go"}`}}},
					msg{role: dialect.RoleTool, results: []result{{id: fmt.Sprint("call", n), tool: "read", text: strings.Repeat("a result ", 400)}}},
					msg{role: dialect.RoleAssistant, text: "done"}) {
					sent++
					turn = append(turn, withMember(t, raw, "ref", fmt.Sprintf("%q", fmt.Sprint("ref-", sent))))
				}
				a.publish(object{
					"turn": n, "format": f, "generation": a.ledger.Generation(), "messages": turn,
					"model": object{"provider": provider, "name": "m", "context_window": 12_000, "max_output_tokens": 1000},
				})
			}
			view := a.ledger.View()
			raw, err := a.render(view)
			if err != nil {
				t.Fatal(err)
			}
			all, edited := string(bytes.Join(rawBytes(raw), nil)), 0
			for _, m := range raw {
				if strings.Contains(string(m), "cleared") && strings.Contains(string(m), `"ref-`) {
					edited++
				}
			}
			kept := 0
			for n := 1; n <= sent; n++ {
				if strings.Contains(all, fmt.Sprintf(`"ref-%d"`, n)) {
					kept++
				}
			}
			t.Logf("%d of %d, %d on edited messages", kept, sent, edited)
			if kept < sent || edited == 0 {
				t.Errorf("%d of %d came back, %d on edited messages:\n%s", kept, sent, edited, lines(raw))
			}
		})
	}
}
