package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"compactd/internal/events/dialect"
	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/summarizetest"
	"compactd/tools/needs"
)

// small is everything that is measured, in seconds.
func small() options {
	o := defaults()
	o.real, o.examples, o.sessions = "../../examples/sessions", "../../examples/sessions", 2
	o.compactbench, o.compint = "testdata/compactbench", "testdata/compint"
	o.timings, o.week = 2, 400
	o.backlog = backlog{rounds: 2, jobs: 50, turns: 20}
	o.load = load{modes: []summarizetest.Mode{summarizetest.Hang, summarizetest.Redirect}, rounds: 1, sessions: 4, turns: 6, warm: 10, rate: 600}
	return o
}

// Everything that is measured can be measured: each line is there, once.
func TestMeasure(t *testing.T) {
	var out strings.Builder
	if err := measureAll(t.Context(), small(), t.TempDir(), &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"retention_paths", "retention_user_messages", "retention_failures", "retention_todos", "retention_instructions", "record_tokens_1", "record_tokens_10",
		"needed_lines/0.6", "needed_lines_cut/0.6", "needed_lines/0.6/neurolink", "week_growth",
		"compactbench/1", "compactbench/decision_override/3", "compactbench_cut/1", "compint/100000/top/1", "compint/3",
		"money_cut", "money_none", "week_share_max", "summary_growth_10", "overflow_p99_ms", "outage_latency_ratio", "outage_latency_ratio/hang", "outage_latency_ratio/redirect",
	} {
		line := regexp.MustCompile(`(?m)^eval ` + name + ` [0-9.]+( |$)`)
		if n := len(line.FindAllString(out.String(), -1)); n != 1 {
			t.Errorf("%d lines of %s in:\n%s", n, name, out.String())
		}
	}
}

// An empty summary retains no facts: the measure of a history does not count facts that are not in
// it.
func TestEmptySummaryRetainsNothing(t *testing.T) {
	c, err := readCorpus("examples", []string{"../../examples/sessions"}, 1, printer{io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		name string
		summarize.Summarizer
		keeps bool
	}{{"embedded", extract.New(), true}, {"stub", stub{}, false}} {
		k, err := retain(t.Context(), c.sessions[0], s, tenths(c.sessions[0]), 10)
		if err != nil {
			t.Fatal(err)
		}
		for i, kind := range facts.Kinds {
			if kind.Name == "todos" { // done, by then
				continue
			}
			if got := k.shares[i]; got.All == 0 || (got.Kept == got.All) != s.keeps {
				t.Errorf("%s keeps %s of %s", s.name, got, kind.Name)
			}
		}
	}
}

// A history that keeps everything keeps all that was needed later, and the same size cut
// from the newest is all of it.
func TestNeededOfWholeHistory(t *testing.T) {
	c, err := readCorpus("examples", []string{"../../examples/sessions"}, 1, printer{io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	r := c.sessions[0]
	tokens, err := newSizes()
	if err != nil {
		t.Fatal(err)
	}
	s := needs.Read(r.messages())
	half := s.Len() / 2
	want := s.After(half, s.Len(), nil)
	var all []dialect.Message
	for _, t := range r.turns[:half] {
		all = append(all, t.messages...)
	}
	whole := needs.Kept{Idents: len(want.Idents), Lines: len(want.Lines)}
	if got := want.In(needs.Text(all)); whole.Idents == 0 || got != whole {
		t.Errorf("the whole history has %+v of %+v", got, whole)
	}
	if got := tokens.newest(r, half, tokens.of(all)); got != needs.Text(all) {
		t.Errorf("of the same size are %d of %d bytes", len(got), len(needs.Text(all)))
	}
	few := tokens.newest(r, half, 500)
	if n := tokens.count(few); n < 450 || n > 550 {
		t.Errorf("of 500 tokens are %d", n)
	}
	if got := want.In(few); got.Idents >= whole.Idents {
		t.Errorf("500 tokens have %+v of %+v", got, whole)
	}
}

// The file has what is measured, and no text or file of a session.
func TestPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "quality.txt")
	if err := writePage(page, "eval x 1\n# lost: paths of s: [\"/secret\"]\n# left out: /secret: no session\n# note\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if want := "eval x 1\n# note\n"; err != nil || string(got) != want {
		t.Errorf("%v: %s", err, got)
	}
}
