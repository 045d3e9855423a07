package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/ops/transcript"
	"compactd/internal/testkit/figures"
)

// P17: a large call behind a summary or in the first exchange does not keep a session above
// its window once it is answered. Arguments of openai-responses are part of a unit, which is
// never cut: such a call leaves with its unit.
func TestLargeCallIsCompacted(t *testing.T) {
	arguments := map[string]string{
		"one string":   fmt.Sprintf(`{"path":"/src/a.go","content":%q}`, strings.Repeat("x := compute(y) // a line\n", 2200)),
		"many strings": fmt.Sprintf(`{"edits":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"old":"a := 1","new":"b := 2"},`, 1800), ",")),
		"numbers":      fmt.Sprintf(`{"values":[%s]}`, strings.TrimSuffix(strings.Repeat("31415,", 9500), ",")),
		"escapes":      fmt.Sprintf(`{"text":%q}`, strings.Repeat("\"\\\n\t", 14000)),
	}
	for name, args := range arguments {
		for _, f := range events.Formats() {
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
	publish := func(list ...msg) {
		n++
		for _, o := range a.publish(object{"turn": n, "format": f, "model": model, "messages": messages(f, list...), "generation": a.ledger.Generation()}) {
			if job, ok := o.Body.(*events.Job); ok && n%2 == 0 {
				_, next := compaction.Decide(a.ledger, a.result(summary(job.ID, 2000)), a.config)
				next.Install(a.ledger)
			}
		}
	}
	generation := int64(-1) // rendered last
	within := func() {
		t.Helper()
		b := a.ledger.Budget()
		if !b.WithinBudget {
			t.Fatalf("turn %d: %d of %d tokens", n, b.EstimatedInput, b.AvailableInput)
		}
		if a.ledger.Generation() == generation {
			return
		}
		generation = a.ledger.Generation()
		view := a.ledger.View()
		rendered, err := a.render(view)
		if err != nil {
			t.Fatal(err)
		}
		if v := validate.Messages(f, rendered); len(v) > 0 {
			t.Fatalf("turn %d: %v", n, v)
		}
	}
	text := strings.Repeat("Words of the conversation go here. ", 74)
	publish(msg{role: dialect.RoleUser, text: "Please write the files."})
	for range before {
		publish(msg{role: dialect.RoleAssistant, text: text}, msg{role: dialect.RoleUser, text: "Go on."})
		within()
	}
	publish(msg{role: dialect.RoleAssistant, calls: []call{{"call-1", "write", args}}})
	a.seq++
	refused := compaction.NewOverflow(compaction.Overflow{Generation: -1}, "", a.seq)
	_, next := compaction.Decide(a.ledger, refused, a.config)
	next.Install(a.ledger)
	publish(msg{role: dialect.RoleTool, results: []result{{id: "call-1", tool: "write", text: "ok"}}})
	for range 40 {
		publish(msg{role: dialect.RoleAssistant, text: "Done."}, msg{role: dialect.RoleUser, text: "Next, please: " + text[:200]})
		within()
	}
}

// P17 on three real sessions; TestFaultNothingPinned takes all.
func TestNothingPinned(t *testing.T) {
	all := realSessions(t)
	nothingPinned(t, []transcript.Session{all[0], all[len(all)/2], all[len(all)-1]})
}

// nothingPinned plays sessions at three windows, as they are and as items of the Responses API,
// in which no arguments are trimmed: no history stays above the available
// input for more than one turn after which no call is open, unless its system prompt and its
// tools take more than half of it.
func nothingPinned(t *testing.T, sessions []transcript.Session) {
	cases, compactions, over := 0, 0, 0
	for _, s := range bothForms(t, sessions) {
		for _, window := range []int64{8_000, 20_000, 200_000} {
			cases++
			generations, pinned := playAt(t, s, window)
			if compactions += int(generations); pinned != "" {
				over++
				t.Errorf("%s of %s at %d: %s", s.Format, s.Name, window, pinned)
			}
		}
	}
	figures.Print(t, "P17", "cases", cases, "compactions", compactions, "over", over)
}

// bothForms are sessions as they are, and each in the dialect that has units.
func bothForms(t *testing.T, in []transcript.Session) (out []transcript.Session) {
	for _, s := range in {
		units, err := s.As(events.Responses)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s, units)
	}
	return out
}

// playAt publishes the turns of a session with a window, and describes the turn at which
// its history is above the available input for too long, "" if there is none.
func playAt(t *testing.T, s transcript.Session, window int64) (generations int64, pinned string) {
	a := newAgent(t, defaultConfig(t))
	above := 0
	for i, recorded := range s.Turns {
		turn := object{}
		if err := codec.Unmarshal(recorded.Payload, &turn); err != nil {
			t.Fatal(err)
		}
		delete(turn, "usage")
		turn["model"] = object{"provider": "openai", "context_window": window}
		a.publish(turn)
		b := a.ledger.Budget()
		switch fixed := b.EstimatedInput - b.Breakdown.History; {
		case b.WithinBudget:
			above = 0
		case !a.ledger.AwaitsResults() && fixed < b.AvailableInput/2:
			if above++; above > 1 {
				return a.ledger.Generation(), fmt.Sprintf("turn %d: %d of %d tokens for %d turns: %+v", i+1, b.EstimatedInput, b.AvailableInput, above, b.Breakdown)
			}
		}
	}
	return a.ledger.Generation(), ""
}
