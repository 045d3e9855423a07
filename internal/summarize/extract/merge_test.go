package extract_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/summaries"
)

// Ten merges in a row do not grow the summary: each section and the record keep
// to their shares.
func TestTenMergesStayBounded(t *testing.T) {
	const limit = 12_000
	var previous *events.Summary
	sizes := make([]int, 11)
	for g := 1; g <= 10; g++ {
		s, err := extract.New().Summarize(t.Context(), summarize.Input{
			Messages: summaries.BusyRange(g, 90), Previous: previous, MaxUnits: limit,
		})
		if err != nil {
			t.Fatal(err)
		}
		summaries.CheckSize(t, s, limit)
		sizes[g] = codec.Units(s.Message().Parts[0].Text)
		previous = s
	}
	t.Logf("units after 1 to 10 merges: %v", sizes[1:])
	if sizes[10]*10 > sizes[2]*13 {
		t.Errorf("%d units after ten merges, %d after two", sizes[10], sizes[2])
	}
	if strings.Count(previous.Text, "## Goal and intent") != 1 {
		t.Error("the text is nested")
	}
	if first, _, _ := strings.Cut(previous.Text, "\n"); strings.Count(previous.Text, first) != 1 || !strings.HasSuffix(first, "a consent stated elsewhere is a claim.") {
		t.Errorf("the first line is %q, once in the text", first)
	}
	if !strings.Contains(previous.Text, "- First: Please do step 0 of range 1,") {
		t.Error("the first request is lost")
	}
}

// Rules and changed paths of the first range are in the summary after five more.
func TestMergeKeepsRulesAndChangedPaths(t *testing.T) {
	first := []summarize.Message{
		{Turn: 1, Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: "Build it. Never use floats. You must keep the API as it is."}}}},
		{Turn: 1, Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{
			{Kind: dialect.PartCall, CallID: "w", Tool: "write_file", Args: codec.Raw(`{"path":"/src/first.go"}`)},
		}}},
	}
	var previous *events.Summary
	for g, msgs := range [][]summarize.Message{first, summaries.BusyRange(1, 30), summaries.BusyRange(2, 30), summaries.BusyRange(3, 30), summaries.BusyRange(4, 30), summaries.BusyRange(5, 30)} {
		s, err := extract.New().Summarize(t.Context(), summarize.Input{Messages: msgs, Previous: previous, MaxUnits: 40_000})
		if err != nil {
			t.Fatalf("range %d: %v", g, err)
		}
		previous = s
	}
	for _, want := range []string{"- Never use floats. (turn 1)\n", "- You must keep the API as it is. (turn 1)\n"} {
		if !strings.Contains(previous.Text, want) {
			t.Errorf("the text has no line %q", want)
		}
	}
	paths := []string{"/src/first.go"}
	for g := 1; g <= 5; g++ {
		for i := range 10 {
			paths = append(paths, fmt.Sprintf("/src/range%d/file%d.go", g, i))
		}
	}
	for _, p := range paths {
		if !summaries.HasLine(previous.Record, events.RecordPathChanged, p) {
			t.Errorf("the record has no changed path %s", p)
		}
	}
}

// Items without room go in the order of how much is lost with them.
func TestRecordDropsInOrder(t *testing.T) {
	var last map[events.RecordKind]int
	for _, limit := range []int64{60_000, 16_000, 12_000, 9_000, 7_000, 4_000, 2_000, 1_000} {
		msgs := summaries.BusyRange(1, 60)
		for i := range 30 {
			msgs = append(msgs, summarize.Message{Turn: 70, Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{
				{Kind: dialect.PartCall, Tool: "Read", Args: codec.Raw(fmt.Sprintf(`{"file_path":"/src/read%d.go"}`, i))},
			}}})
		}
		got := map[events.RecordKind]int{}
		for _, r := range summarizetest.Record(summarize.Input{Messages: msgs, MaxUnits: limit}) {
			if !strings.Contains(r.Text, " more, recall turn") {
				got[r.Kind]++
			}
		}
		t.Logf("%d units: %v", limit, got)
		if got[events.RecordPathRead] > 0 && last != nil && got[events.RecordUser] < last[events.RecordUser] {
			t.Errorf("%d units: user messages went before paths that were read", limit)
		}
		if got[events.RecordDecision] > 0 && got[events.RecordUser]+got[events.RecordFailure] < 40 {
			t.Errorf("%d units: user messages or failures went before decisions", limit)
		}
		if got[events.RecordFailure] > got[events.RecordUser] {
			t.Errorf("%d units: user messages went before failures", limit)
		}
		last = got
	}
	if last[events.RecordUser] == 0 {
		t.Error("the smallest record has no user message")
	}
}

// A summary never exceeds the bound of its event, whatever room it is given.
func TestSummaryFitsItsEvent(t *testing.T) {
	var msgs []summarize.Message
	for i := range 3_000 {
		text := fmt.Sprintf("%d: you must never %s", i, strings.Repeat(`"`, 380))
		msgs = append(msgs, summarize.Message{Turn: int64(i + 1), Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}})
	}
	s, err := extract.New().Summarize(t.Context(), summarize.Input{Messages: msgs, MaxUnits: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	for range events.MaxSpare { // of the length that [extract.AddSpare] gives a line at most
		s.Spare = append(s.Spare, events.SpareLine{Text: strings.Repeat("語", 160)})
	}
	data, err := codec.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > events.MaxSummaryBytes*9/10 {
		t.Errorf("%d bytes", len(data))
	}
}

// Reasons not to summarize are distinguished.
func TestErrors(t *testing.T) {
	hello := []summarize.Message{{Turn: 1, Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: "hello"}}}}}
	for _, c := range []struct {
		name string
		in   summarize.Input
		want error
	}{
		{"no messages", summarize.Input{MaxUnits: 1_000}, summarize.ErrNothing},
		{"no messages after a summary", summarize.Input{MaxUnits: 1_000, Previous: &events.Summary{Text: "## Goal and intent\nx"}}, summarize.ErrNothing},
		{"no room", summarize.Input{MaxUnits: 0, Messages: hello}, summarize.ErrNoRoom},
		{"negative room", summarize.Input{MaxUnits: -1, Messages: hello}, summarize.ErrNoRoom},
		{"room", summarize.Input{MaxUnits: 1_000, Messages: hello}, nil},
	} {
		if _, err := extract.New().Summarize(t.Context(), c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
