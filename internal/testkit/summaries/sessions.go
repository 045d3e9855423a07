package summaries

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/transcript/transcripttest"
	"compactd/internal/summarize"
	"compactd/internal/summarize/snippet"
	"compactd/internal/testkit/realsessions"
)

// RealSessions reads the transcripts that COMPACTD_SESSIONS names.
func RealSessions(t testing.TB) []transcript.Session {
	t.Helper()
	s, err := transcripttest.Read(realsessions.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// SessionMessages are those of a session, with their places.
func SessionMessages(t testing.TB, s transcript.Session) []summarize.Message {
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

// LongSession is the number of messages from which a session counts as long.
const LongSession = 100

// Share is how many of some facts a text holds.
type Share struct{ Kept, All int }

func (s Share) String() string { return fmt.Sprintf("%d/%d", s.Kept, s.All) }

// Retention states how many facts of each kind a summary keeps.
type Retention struct{ Changed, Read, Users, Failures Share }

func (r Retention) String() string {
	return fmt.Sprintf("kept: changed paths %v, read paths %v, user messages %v, failures %v", r.Changed, r.Read, r.Users, r.Failures)
}

// RetentionOf looks for facts in their plainest form, found here without the
// readers of the summarizers.
func RetentionOf(msgs []summarize.Message, text string) Retention {
	facts := map[string][]string{}
	add := func(kind, s string) {
		if s != "" && !slices.Contains(facts[kind], s) {
			facts[kind] = append(facts[kind], s)
		}
	}
	failed := map[string]bool{}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if p.Kind == dialect.PartResult && p.Failed {
				failed[p.CallID] = true
			}
		}
	}
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch {
			case p.Kind == dialect.PartCall && !failed[p.CallID]:
				for name, v := range codec.Members(p.Args) {
					path, _ := codec.Text(v)
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
			case p.Kind == dialect.PartResult && p.Failed:
				first, _, _ := strings.Cut(strings.TrimSpace(p.Text), "\n")
				add("failure", opening(first, 40))
			case p.Kind == dialect.PartText && m.Role == dialect.RoleUser && !strings.HasPrefix(p.Text, "<") && !strings.HasPrefix(p.Text, "[Request"):
				add("user", opening(p.Text, 60))
			}
		}
	}
	count := func(kind string) Share {
		s := Share{All: len(facts[kind])}
		for _, f := range facts[kind] {
			if strings.Contains(text, f) {
				s.Kept++
			}
		}
		return s
	}
	return Retention{count("changed"), count("read"), count("user"), count("failure")}
}

func opening(s string, n int) string {
	return strings.TrimSuffix(snippet.Clip(s, n), "…")
}
