package main

import (
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/transcript/transcripttest"
	"compactd/internal/testkit/realsessions"
)

// A5, A6: on real sessions ours stays within what docs/estimation.md has as
// reached, with some room, and is better than every other that does not count.
func TestGoals(t *testing.T) {
	dir := realsessions.Dir(t)
	sessions, err := transcripttest.ReadThinking(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []stretch
	for _, s := range sessions {
		all = append(all, stretches(s)...)
	}
	if len(all) == 0 {
		t.Skipf("SKIPPED: no session at %s has a usage", dir)
	}
	got := map[string]errors{}
	for _, e := range estimators() {
		if e.counter != "" {
			continue
		}
		var sum errors
		for _, s := range all {
			errs, err := e.measure(s)
			if err != nil {
				t.Fatal(err)
			}
			sum.add(errs)
		}
		got[e.name] = sum
	}
	ours := got[oursName]
	for _, g := range []struct {
		name      string
		of        sample
		mean, p95 float64
	}{
		{"20 calls after a usage", ours.after[1], 0.018, 0.06},
		{"60 calls after a usage", ours.after[2], 0.03, 0.09},
		{"no usage", ours.net, 0.10, 1},
	} {
		if g.of.mean() > g.mean || g.of.p95() > g.p95 {
			t.Errorf("%s: %s, want at most %.1f / %.1f", g.name, g.of, 100*g.mean, 100*g.p95)
		}
	}
	if w := ours.trigger.worst(); w > 0.05 {
		t.Errorf("at the trigger %.3f under what the provider counted", w)
	}
	for name, e := range got {
		if name != oursName && (e.after[1].mean() < ours.after[1].mean() || e.never.mean() < ours.never.mean()) {
			t.Errorf("%s is better than ours: %s and %s, against %s and %s", name, e.after[1], e.never, ours.after[1], ours.never)
		}
	}
}

// A session is cut where its agent compacted or its count fell, and what cannot be distinguished
// from the system prompt is left out.
func TestStretches(t *testing.T) {
	user, answer := codec.Raw(`{"role":"user","content":"u"}`), codec.Raw(`{"role":"assistant","content":"a"}`)
	turn := func(input int64, restarted bool, messages ...codec.Raw) transcript.Turn {
		return transcript.Turn{Messages: messages, Input: input, Restarted: restarted}
	}
	got := stretches(transcript.Session{Name: "s", Format: events.Anthropic, Turns: []transcript.Turn{
		turn(0, false, user, answer), // no usage: unknown
		turn(100, false, user, answer),
		turn(0, false, user),
		turn(150, false, user, answer),
		turn(30, true, user, answer),
		turn(30_000, false, user, answer),
		turn(29_000, false, user, answer),
		turn(20_000, false, user, answer),
	}})
	var b strings.Builder
	for _, s := range got {
		b.WriteString(s.name)
		for _, c := range s.calls {
			b.WriteString(strings.Repeat(" sent", len(c.sent)) + " call")
		}
		b.WriteString("\n")
	}
	if want := "s/1 call sent sent call\ns/2 call sent call sent call\ns/3 call\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// The figures of a sample are those of its absolute errors; the worst is the
// largest that is too low.
func TestSample(t *testing.T) {
	var s sample
	for _, estimated := range []int64{100, 110, 80, 104} {
		s.add(estimated, 100)
	}
	s.add(7, 0) // nothing was counted
	if got := s.String(); got != "8.50 / 20.00 / 20.0" {
		t.Error(got)
	}
	if got := (sample{0.1}).worst(); got != 0 {
		t.Error(got)
	}
}

// A5: on real sessions the estimate right after a compaction by any stage, before the next
// usage, stays within what docs/estimation.md has as reached, with some room. Corrections
// for content that is gone must not be left in it.
func TestGoalsAfterStages(t *testing.T) {
	sessions, err := transcripttest.ReadThinking(realsessions.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	var all []stretch
	for _, s := range sessions {
		all = append(all, stretches(s)...)
	}
	got, err := estimator{name: oursName, profile: "default"}.allStages(all)
	if err != nil {
		t.Fatal(err)
	}
	for stage, want := range map[events.Stage]struct{ mean, p95 float64 }{
		events.StagePrune:       {0.03, 0.10},
		events.StageDeduplicate: {0.01, 0.03},
		events.StageSummarize:   {0.02, 0.09},
		events.StageTruncate:    {0.03, 0.14},
	} {
		if x := got[stage]; len(x) < 10 || x.mean() > want.mean || x.p95() > want.p95 || x.worst() > want.p95 {
			t.Errorf("after %s: %s of %d, want at most %.0f / %.0f", stage, x, len(x), 100*want.mean, 100*want.p95)
		}
	}
}
