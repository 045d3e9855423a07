package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/stored"
)

// Messages of the system keep their place and their words while they are visible, and stay
// behind the notice of a truncation, in all dialects. Where the model does not take them
// their words are a user's.
func TestInstructionsKept(t *testing.T) {
	for _, x := range []struct {
		format events.Format
		model  string
		inside bool
	}{
		{events.OpenAI, "gpt-5", true},
		{events.NeuroLink, "m", true},
		{events.Anthropic, "claude-opus-4-8-20260528", true},
		{events.Anthropic, "claude-sonnet-5", false},
	} {
		t.Run(string(x.format)+"/"+x.model, func(t *testing.T) { keepInstructions(t, x.format, x.model, x.inside) })
	}
}

func keepInstructions(t *testing.T, f events.Format, model string, inside bool) {
	p := withoutSummaries()
	p.Truncate.Enabled = true
	config, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, config)
	var orders []string
	for n := 1; a.ledger.Generation() < 10 || len(orders) < 3; n++ {
		turn := []msg{{role: dialect.RoleUser, text: fmt.Sprintf("Step %d: %s", n, strings.Repeat("words of the user ", 20))}}
		if n%20 == 3 && len(orders) < 6 {
			orders = append(orders, fmt.Sprintf("Order %d:\n  - \"quote\" all\ttables.", n))
			turn = append(turn, msg{role: dialect.RoleSystem, text: orders[len(orders)-1]})
		}
		turn = append(turn, msg{role: dialect.RoleAssistant, text: strings.Repeat("words of the assistant ", 20)})
		a.publish(object{
			"turn": n, "format": f, "generation": a.ledger.Generation(), "messages": messages(f, turn...),
			"model": object{"provider": "openai", "name": model, "context_window": 5_000},
		})
		view := a.ledger.View()
		raw, err := a.render(view)
		if err != nil {
			t.Fatal(err)
		}
		if v := validate.Messages(f, raw); len(v) > 0 {
			t.Fatalf("turn %d: %v", n, v)
		}
		found, system := found(t, f, raw, orders)
		if found != len(orders) || system != (inside && found > 0) {
			t.Fatalf("turn %d, generation %d: %d of %d instructions, as the system's %v:\n%s", n, a.ledger.Generation(), found, len(orders), system, lines(raw))
		}
	}
	if original, err := a.render(a.ledger.ViewAt(0)); err != nil || inside && !sameRaw(original, a) {
		t.Errorf("published is another history (%v)", err)
	}
}

// found counts the instructions in a history, and reports whether one is the system's.
func found(t *testing.T, f events.Format, raw []codec.Raw, orders []string) (n int, system bool) {
	list, err := f.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		for _, p := range m.Parts {
			for _, o := range orders {
				if strings.Contains(p.Text, o) {
					n++
					system = system || m.Role == dialect.RoleSystem
				}
			}
		}
	}
	return n, system
}

// sameRaw reports whether a history is what the agent has published.
func sameRaw(raw []codec.Raw, a *agent) bool {
	var want []string
	for seq := measure.Seq(1); seq <= a.seq; seq++ {
		for _, m := range a.texts[seq] {
			want = append(want, string(m.Raw))
		}
	}
	return slices.EqualFunc(raw, want, func(r codec.Raw, s string) bool { return string(r) == s })
}

// A summary without a record is not used (C6): the job has failed.
func TestSummaryWithoutRecord(t *testing.T) {
	for record, want := range map[string]bool{"": false, `"record":null,`: false, `"record":[],`: true} {
		a := newAgent(t, defaultConfig(t))
		var job *events.Job
		for n := 1; job == nil && n < 200; n++ {
			outs := a.publish(object{"turn": n, "model": object{"provider": "openai", "context_window": 20_000}, "messages": messages(events.OpenAI,
				msg{role: dialect.RoleUser, text: strings.Repeat("please do it ", 60)}, msg{role: dialect.RoleAssistant, text: strings.Repeat("it is done ", 60)})})
			for _, o := range outs {
				if j, ok := o.Body.(*events.Job); ok {
					job = j
				}
			}
		}
		a.seq++
		r, _, err := stored.ReadResult(fmt.Appendf(nil, `{"v":1,"id":"s","job":%q,%s"text":"What was done."}`, job.ID, record), a.seq)
		if err != nil {
			t.Fatal(err)
		}
		_, next := compaction.Decide(a.ledger, r, a.config)
		next.Install(a.ledger)
		if got := a.ledger.Prepared(); got != want {
			t.Errorf("%s: prepared %v", record, got)
		}
	}
}
