package extract_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/summaries"
)

// BenchmarkSummarize reads about 200,000 tokens: once as prose of an assistant,
// which is looked at word by word, once as the output of tools.
func BenchmarkSummarize(b *testing.B) {
	prose := strings.Repeat("The parser reads one token at a time, and the lexer keeps the last one. ", 55)
	output := "ok\n" + strings.Repeat("main.go:12: some output of a tool that is of no use\n", 62)
	for _, c := range []struct {
		name string
		make func(i int) []dialect.Part
	}{
		{"prose", func(int) []dialect.Part { return []dialect.Part{{Kind: dialect.PartText, Text: prose}} }},
		{"tools", func(i int) []dialect.Part {
			return []dialect.Part{
				{Kind: dialect.PartCall, CallID: fmt.Sprint(i), Tool: "Bash", Args: codec.Raw(`{"command":"go test ./..."}`)},
				{Kind: dialect.PartResult, CallID: fmt.Sprint(i), Text: output},
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			in := summarize.Input{MaxUnits: 40_000}
			for i := range 200 {
				in.Messages = append(in.Messages, summarize.Message{Turn: int64(i), Message: dialect.Message{Role: dialect.RoleAssistant, Parts: c.make(i)}})
			}
			b.SetBytes(200 * 4_000)
			for b.Loop() {
				if _, err := extract.New().Summarize(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRealSession summarizes the longest recorded session.
func BenchmarkRealSession(b *testing.B) {
	var in summarize.Input
	for _, s := range summaries.RealSessions(b) {
		if msgs := summaries.SessionMessages(b, s); len(msgs) > len(in.Messages) {
			in = summarize.Input{Messages: msgs, MaxUnits: 40_000}
		}
	}
	for b.Loop() {
		if _, err := extract.New().Summarize(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
