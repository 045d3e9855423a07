package compaction_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
)

// A pinned message stays as it was published, under truncations and summaries, with the call
// that its result belongs to (F10), by a member or by a pattern of the policy. One that
// does not fit is compacted as any other.
func TestPinnedStays(t *testing.T) {
	for _, summaries := range []bool{false, true} {
		for _, by := range []string{"member", "config", "session"} {
			t.Run(fmt.Sprintf("summaries=%v/%s", summaries, by), func(t *testing.T) { pinnedStays(t, summaries, by) })
		}
	}
}

func pinnedStays(t *testing.T, summaries bool, by string) {
	p := withoutSummaries()
	p.Truncate.Enabled, p.Summarize.Enabled = true, summaries
	const pattern = "a result that is * and pinned 3"
	if by == "config" {
		p.Pins = []string{pattern}
	}
	config, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, config)
	large := strings.Repeat("a result that is large and pinned ", 60)
	for n := 1; a.ledger.Generation() < 6 && n < 400; n++ {
		id := fmt.Sprint("call-", n)
		turn := messages(events.Anthropic,
			msg{role: dialect.RoleUser, text: fmt.Sprintf("Step %d: %s", n, strings.Repeat("words of the user ", 20))},
			msg{role: dialect.RoleAssistant, calls: []call{{id, "read", `{"path":"/a.go"}`}}},
			msg{role: dialect.RoleTool, results: []result{{id: id, tool: "read", text: large + fmt.Sprint(n)}}},
			msg{role: dialect.RoleAssistant, text: "done"})
		if n == 3 && by == "member" { // a result, whose call is not pinned itself
			turn[2] = append(bytes.TrimSuffix(bytes.Clone(turn[2]), []byte("}")), []byte(`,"pin":true}`)...)
		}
		event := object{
			"turn": n, "format": "anthropic", "generation": a.ledger.Generation(), "messages": turn,
			"model": object{"provider": "openai", "context_window": 10_000},
		}
		if n == 3 && by == "session" { // a policy holds for the turn that it comes with
			event["policy"] = object{"pins": []string{pattern}}
		}
		for _, o := range a.publish(event) {
			if job, ok := o.Body.(*events.Job); ok {
				_, next := compaction.Decide(a.ledger, a.result(summary(job.ID, 300)), a.config)
				next.Install(a.ledger)
			}
		}
		view := a.ledger.View()
		raw, err := a.render(view)
		if err != nil {
			t.Fatal(err)
		}
		if v := validate.Messages(events.Anthropic, raw); len(v) > 0 {
			t.Fatalf("turn %d: %v", n, v)
		}
		var all []byte
		for _, r := range raw {
			all = append(all, r...)
		}
		if n >= 3 && (!bytes.Contains(all, []byte(large+"3")) || !bytes.Contains(all, []byte(`"id":"call-3"`))) {
			t.Fatalf("turn %d, generation %d: the pinned result is gone:\n%s", n, a.ledger.Generation(), lines(raw))
		}
	}
	if a.ledger.Generation() < 6 {
		t.Fatal("too few compactions: the test shows nothing")
	}
}
