package summarizetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/sanitize"
)

// RunSummarizer holds a summarizer to what the worker relies on, for every writer
// its text. newSummarizer is called once for each test, inside a bubble.
func RunSummarizer(t *testing.T, newSummarizer func(testing.TB) summarize.Summarizer) {
	for name, test := range map[string]func(*testing.T, summarize.Summarizer){
		"bounds":      testBounds,
		"record":      testRecord,
		"no summary":  testNoSummary,
		"generations": testGenerations,
		"same input":  testSameInput,
	} {
		t.Run(name, func(t *testing.T) {
			sanitize.Redact("warm up: what a bubble makes and keeps must not be used by the next one")
			synctest.Test(t, func(t *testing.T) { test(t, newSummarizer(t)) })
		})
	}
}

// History is a range of a session: n turns of a user's wish, an assistant's words,
// and a change to a file of its own.
func History(first, n int) []summarize.Message {
	var all []summarize.Message
	for turn := int64(first); turn < int64(first+n); turn++ {
		path := fmt.Sprintf("/repo/part%d.go", turn)
		for i, m := range []dialect.Message{
			{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: fmt.Sprintf("please fix part %d, and never touch the tests", turn)}}},
			{Role: dialect.RoleAssistant, Parts: []dialect.Part{
				{Kind: dialect.PartText, Text: strings.Repeat(fmt.Sprintf("I decided to rewrite step %d of the parser. ", turn), 20)},
				{Kind: dialect.PartCall, CallID: fmt.Sprint("c", turn), Tool: "Edit", Args: fmt.Appendf(nil, `{"file_path":%q}`, path)},
			}},
			{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartResult, CallID: fmt.Sprint("c", turn), Text: "ok"}}},
		} {
			all = append(all, summarize.Message{Turn: turn, Index: int64(i), Message: m})
		}
	}
	return all
}

func input(first, n int, maxUnits int64, previous *events.Summary) summarize.Input {
	return summarize.Input{Messages: History(first, n), MaxUnits: maxUnits, Previous: previous}
}

// testBounds: a summary fits, names its writer, and has a text.
func testBounds(t *testing.T, s summarize.Summarizer) {
	for _, room := range []int64{3_000, 10_000, 40_000} {
		got, err := s.Summarize(t.Context(), input(1, 10, room, nil))
		if err != nil {
			t.Fatal(err)
		}
		if n := int64(codec.Units(got.Message().Parts[0].Text)); n > room || n == 0 {
			t.Errorf("%d units of at most %d", n, room)
		}
		if got.Model == "" || got.Prompt == "" || strings.TrimSpace(got.Text) == "" || got.Failure != "" {
			t.Errorf("%+v", got)
		}
	}
}

// Record is the record that a summary of a range has, with or without a model.
func Record(in summarize.Input) []events.RecordLine {
	in, err := summarize.SanitizeInput(context.Background(), in)
	if err != nil {
		return nil // the context never ends
	}
	return summarize.RedactSummary(&events.Summary{Record: extract.Scan(&in).Record(in.Limit())}).Record
}

// testRecord (C6): the facts are the same, any caller who writes.
func testRecord(t *testing.T, s summarize.Summarizer) {
	in := input(1, 10, 10_000, nil)
	got, err := s.Summarize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Record(in), got.Record); d != "" || len(got.Record) == 0 {
		t.Errorf("%d lines of record\n%s", len(got.Record), d)
	}
}

// testNoSummary: a call without a summary returns the errors that the worker matches.
func testNoSummary(t *testing.T, s summarize.Summarizer) {
	if _, err := s.Summarize(t.Context(), input(1, 0, 10_000, nil)); !errors.Is(err, summarize.ErrNothing) {
		t.Errorf("no messages: %v", err)
	}
	if _, err := s.Summarize(t.Context(), input(1, 10, 10, nil)); !errors.Is(err, summarize.ErrNoRoom) {
		t.Errorf("no room: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Summarize(gone, input(1, 10, 10_000, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// testGenerations (C3): merged ten times, a summary still fits, and still contains
// what it began with.
func testGenerations(t *testing.T, s summarize.Summarizer) {
	var last *events.Summary
	for k := range 10 {
		next, err := s.Summarize(t.Context(), input(1+k*10, 10, 10_000, last))
		if err != nil {
			t.Fatal(err)
		}
		last = next
	}
	text := last.Message().Parts[0].Text
	if n := codec.Units(text); n > 10_000 {
		t.Errorf("%d units", n)
	}
	for _, want := range []string{"please fix part 1,", "never touch the tests"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is lost", want)
		}
	}
}

// testSameInput: callers at once get what one alone gets.
func testSameInput(t *testing.T, s summarize.Summarizer) {
	want, err := s.Summarize(t.Context(), input(1, 10, 10_000, nil))
	if err != nil {
		t.Fatal(err)
	}
	const n = 8
	diffs := make(chan string, n)
	for range n {
		go func() {
			got, err := s.Summarize(t.Context(), input(1, 10, 10_000, nil))
			diffs <- cmp.Diff(want, got) + errorText(err)
		}()
	}
	for range n {
		if d := <-diffs; d != "" {
			t.Error(d)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
