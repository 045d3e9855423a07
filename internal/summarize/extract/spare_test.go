package extract_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/idents"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
)

// Each spare line is of the range, word for word, and has an identifier that neither the summary nor a newer line has.
func TestSpare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"the", "node_list", "parseHeader", "src/a.go", "42", "v1.2.3", "\n", "and", "rate_limit"})
		text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 1, 40).Draw(t, "words"), " ") })
		in := summarize.Input{MaxUnits: 4_000}
		var all strings.Builder
		for i, s := range rapid.SliceOfN(text, 1, 6).Draw(t, "texts") {
			m := dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: s}}}
			in.Messages = append(in.Messages, summarize.Message{Turn: int64(i + 1), Message: m})
			all.WriteString(strings.Join(strings.Fields(s), " ") + "\n")
		}
		s := extract.AddSpare(&in, &events.Summary{Text: "about node_list", Record: []events.RecordLine{}})
		seen := map[string]bool{"node_list": true}
		last := int64(len(in.Messages))
		for _, l := range s.Spare {
			if text := strings.TrimSuffix(l.Text, "…"); !strings.Contains(all.String(), text) {
				t.Fatalf("%q is not in the range", text)
			}
			if l.Turn > last {
				t.Fatalf("a line of turn %d comes behind one of turn %d", l.Turn, last)
			}
			last = l.Turn
			names := slices.Collect(idents.In(l.Text))
			if !slices.ContainsFunc(names, func(w string) bool { return !seen[w] }) {
				t.Fatalf("%q has nothing new", l.Text)
			}
			for _, w := range names {
				seen[w] = true
			}
		}
	})
}

// Arguments of calls are read string by string, a long line is cut around its identifier, secrets are taken
// out, and those of the summary before come last.
func TestSpareOfCalls(t *testing.T) {
	long := strings.Repeat("word ", 60) + "deep_name " + strings.Repeat("word ", 60)
	args, err := codec.Marshal(map[string]string{"old_string": "first_line\n" + long, "key": "sk_live_4eC39HqLyjWDarjtT1zdp7dc in env_file"})
	if err != nil {
		t.Fatal(err)
	}
	in := summarize.Input{
		MaxUnits: 20_000,
		Messages: []summarize.Message{
			{Turn: 1, Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: "Fix it, please."}}}},
			{Turn: 2, Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{{Kind: dialect.PartCall, Tool: "edit", Args: args}}}},
		},
		Previous: &events.Summary{Text: "t", Record: []events.RecordLine{}, Spare: []events.SpareLine{
			{Position: events.Position{Turn: 1}, Text: "older_name"}, {Position: events.Position{Turn: 1}, Text: "first_line again"},
		}},
	}
	s, err := extract.New().Summarize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range s.Spare {
		all = append(all, l.Text)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"deep_name", "first_line", "older_name"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is there %d times:\n%s", want, strings.Count(text, want), text)
		}
	}
	if strings.Contains(text, "4eC39") || !strings.HasSuffix(text, "older_name") {
		t.Errorf("spare lines:\n%s", text)
	}
}
