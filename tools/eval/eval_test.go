package main

import (
	"regexp"
	"strings"
	"testing"

	"compactd/internal/ops/facts"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/summarizetest"
)

// small is everything that is measured, in seconds.
func small() options {
	o := defaults()
	o.real, o.examples, o.sessions = "../../examples/sessions", "../../examples/sessions", 2
	o.timings = 2
	o.backlog = backlog{rounds: 2, jobs: 50, turns: 20}
	o.load = load{modes: []summarizetest.Mode{summarizetest.Hang, summarizetest.Redirect}, rounds: 1, sessions: 4, turns: 6, warm: 10, rate: 600}
	return o
}

// Everything that is measured can be measured: each line is there, once.
func TestMeasure(t *testing.T) {
	var out strings.Builder
	if err := measure(t.Context(), small(), t.TempDir(), &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"retention_paths", "retention_user_messages", "retention_failures", "retention_todos", "record_tokens_1", "record_tokens_10",
		"summary_growth_10", "overflow_p99_ms", "outage_latency_ratio", "outage_latency_ratio/hang", "outage_latency_ratio/redirect",
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
	c, err := readCorpus("examples", "../../examples/sessions", 1)
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
