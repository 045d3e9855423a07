package main

import (
	"strings"
	"testing"

	"compactd/internal/events"
)

// The sums are those of all sessions of the tenant, listed or not.
func TestFleetSums(t *testing.T) {
	all := &fleet{Levels: map[events.Level]int{}}
	one := events.SessionSummary{
		Session: "s1", EstimatedInput: 10, AvailableInput: 100, Level: events.LevelOK, Rereads: 1, Reruns: 2,
		Cost: events.Cost{Input: 7e9, Lost: 1e9, Saved: 3e9, Summaries: 5e9},
	}
	two := one
	two.Session, two.EstimatedInput = "s2", 20
	all.add([]events.SessionSummary{one}, 1)
	all.add([]events.SessionSummary{two}, 1)
	var b strings.Builder
	if err := all.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"s2 ", "(the fullest of 2 sessions; ", "repeated after compactions: 2 reads of files, 4 other calls\n",
		"spent: $14.00 on input, $10.00 on summaries\nsaved on input: $6.00; lost on caches: $2.00\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// A compaction states how much of what was in use it kept.
func TestHow(t *testing.T) {
	e := events.HistoryEntry{Compacted: true, StagesUsed: []events.Stage{events.StageSummarize}, Stages: []events.StageReport{
		{Name: events.StageSummarize, TokensBefore: 900, TokensAfter: 400, Missing: 2, Restored: 1, LinesMissing: 5, LinesKept: 3},
		{Name: events.StageTruncate, TokensBefore: 400, TokensAfter: 400},
	}}
	const want = "summarize −500, kept 1 of 2 files in use, kept 3 of 5 lines in use"
	if got := how(&e); got != want {
		t.Errorf("how is %q, want %q", got, want)
	}
}
