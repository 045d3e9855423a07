package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/summaries"
)

// instruct is a range whose messages of the system instruct the agent.
func instruct(messages []summarize.Message, orders ...string) []summarize.Message {
	for i, text := range orders {
		at := (i + 1) * len(messages) / (len(orders) + 1)
		m := summarize.Message{Turn: messages[at].Turn, Message: dialect.Message{Role: dialect.RoleSystem, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}}
		messages = append(messages[:at:at], append([]summarize.Message{m}, messages[at:]...)...)
	}
	return messages
}

func orderOf(generation, n int) string {
	return fmt.Sprintf("Order %d of %d:\n  1. answer in French;\n  - keep \"quotes\", tabs\tand   spaces;\n\n2. never drop table %d.", n, generation, n)
}

// Instructions are in the record word for word after ten merges, whatever else has no
// room, in the text of either summarizer.
func TestInstructionsAfterTenMerges(t *testing.T) {
	for name, s := range map[string]summarize.Summarizer{"embedded": extract.New(), "llm": llm.New()} {
		t.Run(name, func(t *testing.T) {
			var previous *events.Summary
			var orders []string
			for g := 1; g <= 10; g++ {
				orders = append(orders, orderOf(g, 1), orderOf(g, 2))
				in := summarize.Input{Messages: instruct(summaries.BusyRange(g, 60), orders[len(orders)-2:]...), Previous: previous, MaxUnits: 12_000}
				got, err := s.Summarize(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				summaries.CheckSize(t, got, 12_000)
				text := got.Message().Parts[0].Text
				for _, order := range orders {
					if !strings.Contains(text, order) {
						t.Fatalf("after %d merges %q is not in\n%s", g, order, text)
					}
				}
				previous = got
			}
		})
	}
}

// Where not all have room the newest stay, and a part of the record is left to other facts.
func TestNewestInstructionsStay(t *testing.T) {
	var orders []string
	for n := range 200 {
		orders = append(orders, orderOf(1, n))
	}
	record := summarizetest.Record(summarize.Input{Messages: instruct(summaries.BusyRange(1, 300), orders...), MaxUnits: 12_000})
	var got []string
	users := 0
	for _, l := range record {
		switch {
		case strings.Contains(l.Text, " more, recall turn"):
		case l.Kind == events.RecordInstruction:
			got = append(got, l.Text)
		case l.Kind == events.RecordUser:
			users++
		}
	}
	if len(got) < 10 || len(got) == len(orders) || users == 0 {
		t.Fatalf("%d of %d instructions and %d messages of the user", len(got), len(orders), users)
	}
	if want := orders[len(orders)-len(got):]; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
	long := summarizetest.Record(summarize.Input{Messages: instruct(summaries.BusyRange(1, 60), strings.Repeat("a very long order ", 5_000)), MaxUnits: 12_000})
	if long[0].Kind != events.RecordInstruction || !strings.HasSuffix(long[0].Text, "…") || len(long) < 3 {
		t.Errorf("%d facts, the first %.60q", len(long), long[0].Text)
	}
}

// An agent that adopts a history with a summary in it keeps its instructions.
func TestInstructionsOfACarriedSummary(t *testing.T) {
	s, err := extract.New().Summarize(t.Context(), summarize.Input{Messages: instruct(summaries.BusyRange(1, 30), orderOf(1, 1), orderOf(1, 2)), MaxUnits: 12_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []dialect.Role{dialect.RoleUser, dialect.RoleSystem} {
		carried := s.Message()
		carried.Role = role
		again, err := extract.New().Summarize(t.Context(), summarize.Input{
			MaxUnits: 12_000, Messages: append([]summarize.Message{{Turn: 1, Message: carried}}, summaries.BusyRange(2, 30)...),
		})
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 2; n++ {
			if text := again.Message().Parts[0].Text; !strings.Contains(text, orderOf(1, n)) {
				t.Errorf("role %s: no %q in\n%s", role, orderOf(1, n), text)
			}
		}
	}
}

// There is no summary without its record (C6): of facts that have no room none is made.
func TestNoSummaryWithoutRecord(t *testing.T) {
	for limit := int64(0); limit < 3_000; limit += 37 {
		in := summarize.Input{Messages: summaries.BusyRange(1, 30), MaxUnits: limit}
		s, err := extract.New().Summarize(t.Context(), in)
		if err == nil && len(s.Record) == 0 {
			t.Errorf("%d units: a summary without its record: %s", limit, s.Text)
		}
		if limit > 1_000 && err != nil {
			t.Errorf("%d units: %v", limit, err)
		}
	}
}
