package extract_test

import (
	"errors"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/summaries"
)

// The first 70 % of each long session fit, and keep most of what an agent would
// miss; the figures are logged. Ten merges of a tenth each stay bounded.
func TestRealSessions(t *testing.T) {
	for _, s := range summaries.RealSessions(t) {
		msgs := summaries.SessionMessages(t, s)
		if len(msgs) < summaries.LongSession {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			part := msgs[:len(msgs)*7/10]
			for _, limit := range []int64{40_000, 5_000, 300} {
				in := summarize.Input{Messages: part, MaxUnits: limit}
				got, err := extract.New().Summarize(t.Context(), in)
				if limit == 300 && errors.Is(err, summarize.ErrNoRoom) {
					continue // never a summary without its record
				}
				if err != nil {
					t.Fatalf("%d units: %v", limit, err)
				}
				summaries.CheckSize(t, got, limit)
				text := got.Message().Parts[0].Text
				r := summaries.RetentionOf(part, text)
				t.Logf("%d messages, room %d: %d units, record %d lines; %s", len(part), limit, codec.Units(text), len(got.Record), r)
				if limit == 40_000 && r.Changed.Kept < r.Changed.All {
					t.Errorf("changed paths are lost: %s", r)
				}
			}
			var previous *events.Summary
			var sizes []int
			for i := range 10 {
				in := summarize.Input{Messages: msgs[len(msgs)*i/10 : len(msgs)*(i+1)/10], Previous: previous, MaxUnits: 12_000}
				got, err := extract.New().Summarize(t.Context(), in)
				if err != nil {
					t.Fatalf("part %d: %v", i, err)
				}
				summaries.CheckSize(t, got, in.MaxUnits)
				sizes = append(sizes, codec.Units(got.Message().Parts[0].Text))
				previous = got
			}
			t.Logf("ten merges, room 12000: %v units; %s", sizes, summaries.RetentionOf(msgs, previous.Message().Parts[0].Text))
		})
	}
}

// Short sessions are summarized too.
func TestRealShortSessions(t *testing.T) {
	n, units := 0, 0
	for _, s := range summaries.RealSessions(t) {
		msgs := summaries.SessionMessages(t, s)
		if len(msgs) >= summaries.LongSession {
			continue
		}
		got, err := extract.New().Summarize(t.Context(), summarize.Input{Messages: msgs, MaxUnits: 6_000})
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		summaries.CheckSize(t, got, 6_000)
		n++
		units += codec.Units(got.Message().Parts[0].Text)
	}
	if n > 0 {
		t.Logf("%d short sessions, %d units on average", n, units/n)
	}
}
