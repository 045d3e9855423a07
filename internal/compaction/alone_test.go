package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// A history that no log has fits, however its turns grow, keeps what was decided about a shorter
// one, and leaves room for its tail. A window that calls have shown holds for it.
func TestAlone(t *testing.T) {
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		model := &events.Model{Provider: "openai", Name: "gpt-4", ContextWindow: 4000, MaxOutputTokens: 500}
		read := func(raw string) dialect.Message {
			m, err := events.OpenAI.Read(codec.Raw(raw))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		refused := measure.Tokens(rapid.SampledFrom([]int{0, 0, 2000}).Draw(t, "refused"))
		tail := []dialect.Message{read(fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("state ", rapid.IntRange(1, 300).Draw(t, "tail"))))}
		fit := func(turns [][]dialect.Message) (*render.View, events.Budget) {
			l := compaction.NewLedger(events.Address{Tenant: "t", Session: "s"})
			alone, err := l.Alone(config, &compaction.Unrecorded{Model: model, Format: events.OpenAI, Refused: refused})
			if err != nil {
				t.Fatal(err)
			}
			alone.Beside(tail)
			for _, turn := range turns {
				alone.Add(turn)
			}
			if l.HasTurns() {
				t.Fatal("the ledger has turns")
			}
			return alone.End(tail)
		}
		turns := [][]dialect.Message{{read(`{"role":"user","content":"Why does it fail?"}`)}}
		kept, n := 0, rapid.IntRange(1, 40).Draw(t, "turns")
		var before *render.View
		for i := range n {
			size := rapid.IntRange(1, 60).Draw(t, "size")
			turns = append(turns, []dialect.Message{
				read(fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"f%d.go\"}"}}]}`, i, i)),
				read(fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, strings.Repeat("line ", size))),
			})
			view, b := fit(turns)
			most := measure.Tokens(b.AvailableInput)
			if !b.WithinBudget || refused > 0 && most >= refused {
				t.Fatalf("%d turns: %+v", i, b)
			}
			if before != nil && len(view.Entries) > len(before.Entries) {
				kept++
			}
			before = view
		}
		if kept < n*2/3 {
			t.Errorf("%d of %d views have more than the one before", kept, n)
		}
	})
}

// A refusal of a history that no session has shows the window, and nothing of the session.
func TestOverflowUnrecorded(t *testing.T) {
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		overflow compaction.Overflow
		want     int64 // available
	}{
		{compaction.Overflow{Unrecorded: 2000}, 1800},
		{compaction.Overflow{Unrecorded: 2000, Limit: 3000, Actual: 4000}, 1350},
		{compaction.Overflow{Unrecorded: 2000, Limit: 3000, Actual: 2900}, 1800},
		{compaction.Overflow{Unrecorded: 100}, 350},
	} {
		l := compaction.NewLedger(events.Address{Tenant: "t", Session: "s"})
		in, err := new(events.Decoder).Turn([]byte(`{"model":{"provider":"openai","name":"gpt-4","context_window":4000,"max_output_tokens":500},"messages":[{"role":"user","content":"Why?"}]}`), "")
		if err != nil {
			t.Fatal(err)
		}
		_, next := compaction.Decide(l, config.Turn(l, in, 1), config)
		next.Install(l)
		estimate := l.Budget().EstimatedInput
		test.overflow.Generation = -1
		outs, next := compaction.Decide(l, compaction.NewOverflow(test.overflow, "o", 2), config)
		next.Install(l)
		if b := l.Budget(); b.AvailableInput != test.want || b.EstimatedInput != estimate || len(outs) != 1 {
			t.Errorf("%+v: %d outcomes, %+v", test.overflow, len(outs), b)
		}
	}
}
