package summarize_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/transcript/transcripttest"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/snippet"
	"compactd/internal/testkit/realsessions"
)

// realSessions reads the transcripts that COMPACTD_SESSIONS names.
func realSessions(t testing.TB) []transcript.Session {
	t.Helper()
	s, err := transcripttest.Read(realsessions.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sessionMessages(t testing.TB, s transcript.Session) []summarize.Message {
	t.Helper()
	var out []summarize.Message
	for _, turn := range s.Turns {
		msgs, err := s.Format.ReadAll(turn.Messages)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range msgs {
			out = append(out, summarize.Message{Turn: turn.Number, Index: int64(i), Message: m})
		}
	}
	return out
}

// longSession is the number of messages from which a session counts as long.
const longSession = 100

// The first 70 % of each long session fit, and keep most of what an agent would
// miss; the figures are logged. Ten merges of a tenth each stay bounded.
func TestRealSessions(t *testing.T) {
	for _, s := range realSessions(t) {
		msgs := sessionMessages(t, s)
		if len(msgs) < longSession {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			part := msgs[:len(msgs)*7/10]
			for _, limit := range []int64{40_000, 5_000, 300} {
				in := summarize.Input{Format: s.Format, Messages: part, MaxUnits: limit}
				got, err := extract.New().Summarize(t.Context(), in)
				if limit == 300 && errors.Is(err, summarize.ErrNoRoom) {
					continue // never a summary without its record
				}
				if err != nil {
					t.Fatalf("%d units: %v", limit, err)
				}
				checkSize(t, got, limit)
				text := got.Message().Parts[0].Text
				r := retentionOf(part, text)
				t.Logf("%d messages, room %d: %d units, record %d lines; %s", len(part), limit, events.Units(text), len(got.Record), r)
				if limit == 40_000 && r.changed.kept < r.changed.all {
					t.Errorf("changed paths are lost: %s", r)
				}
			}
			var previous *events.Summary
			var sizes []int
			for i := range 10 {
				in := summarize.Input{Format: s.Format, Messages: msgs[len(msgs)*i/10 : len(msgs)*(i+1)/10], Previous: previous, MaxUnits: 12_000}
				got, err := extract.New().Summarize(t.Context(), in)
				if err != nil {
					t.Fatalf("part %d: %v", i, err)
				}
				checkSize(t, got, in.MaxUnits)
				sizes = append(sizes, events.Units(got.Message().Parts[0].Text))
				previous = got
			}
			t.Logf("ten merges, room 12000: %v units; %s", sizes, retentionOf(msgs, previous.Message().Parts[0].Text))
		})
	}
}

// Short sessions are summarized too.
func TestRealShortSessions(t *testing.T) {
	n, units := 0, 0
	for _, s := range realSessions(t) {
		msgs := sessionMessages(t, s)
		if len(msgs) >= longSession {
			continue
		}
		got, err := extract.New().Summarize(t.Context(), summarize.Input{Format: s.Format, Messages: msgs, MaxUnits: 6_000})
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		checkSize(t, got, 6_000)
		n++
		units += events.Units(got.Message().Parts[0].Text)
	}
	if n > 0 {
		t.Logf("%d short sessions, %d units on average", n, units/n)
	}
}

// share is how many of some facts a text holds.
type share struct{ kept, all int }

func (s share) String() string { return fmt.Sprintf("%d/%d", s.kept, s.all) }

type retention struct{ changed, read, users, failures share }

func (r retention) String() string {
	return fmt.Sprintf("kept: changed paths %v, read paths %v, user messages %v, failures %v", r.changed, r.read, r.users, r.failures)
}

// retentionOf looks for facts in their plainest form, found here without the
// package's own readers.
func retentionOf(msgs []summarize.Message, text string) retention {
	facts := map[string][]string{}
	add := func(kind, s string) {
		if s != "" && !slices.Contains(facts[kind], s) {
			facts[kind] = append(facts[kind], s)
		}
	}
	failed := map[string]bool{}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if p.Kind == events.PartResult && p.Failed {
				failed[p.CallID] = true
			}
		}
	}
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch {
			case p.Kind == events.PartCall && !failed[p.CallID]:
				for name, v := range events.Members(p.Args) {
					path, _ := events.Text(v)
					if name != "path" && name != "file_path" {
						continue
					}
					switch strings.ToLower(p.Tool) {
					case "edit", "write":
						add("changed", path)
					case "read":
						add("read", path)
					}
				}
			case p.Kind == events.PartResult && p.Failed:
				first, _, _ := strings.Cut(strings.TrimSpace(p.Text), "\n")
				add("failure", opening(first, 40))
			case p.Kind == events.PartText && m.Role == events.RoleUser && !strings.HasPrefix(p.Text, "<") && !strings.HasPrefix(p.Text, "[Request"):
				add("user", opening(p.Text, 60))
			}
		}
	}
	count := func(kind string) share {
		s := share{all: len(facts[kind])}
		for _, f := range facts[kind] {
			if strings.Contains(text, f) {
				s.kept++
			}
		}
		return s
	}
	return retention{count("changed"), count("read"), count("user"), count("failure")}
}

func opening(s string, n int) string {
	return strings.TrimSuffix(snippet.Clip(s, n), "…")
}
