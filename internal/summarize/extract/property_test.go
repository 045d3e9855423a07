package extract_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/snippet"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/summaries"
)

// Whatever the conversation and the room: the message fits, a second run gives
// the same bytes, and no line is longer than one line.
func TestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var previous *events.Summary
		for i := range rapid.IntRange(1, 3).Draw(t, "generations") {
			c := summaries.DrawConversation(t, int64(1+20*i))
			in := c.Input(previous, rapid.OneOf(rapid.Int64Range(-5, 600), rapid.Int64Range(0, 9_000)).Draw(t, "max"))
			in.Focus = rapid.SampledFrom([]string{"", "parser cache", "🎉"}).Draw(t, "focus")
			s, err := extract.New().Summarize(t.Context(), in)
			if err != nil {
				if !errors.Is(err, summarize.ErrNothing) && !errors.Is(err, summarize.ErrNoRoom) {
					t.Fatal(err)
				}
				continue
			}
			summaries.CheckSize(t, s, in.MaxUnits)
			again, _ := extract.New().Summarize(t.Context(), in)
			if d := cmp.Diff(s, again); d != "" {
				t.Fatalf("second run differs:\n%s", d)
			}
			for _, r := range s.Record {
				if r.Text == "" || strings.ContainsAny(r.Text, "\n\r\x00\x1b\u202e") {
					t.Fatalf("record line %q", r.Text)
				}
			}
			previous = s
		}
	})
}

// With room enough, the record has every changed path, and every user message as far
// as it is inert.
func TestRecordIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := summaries.DrawConversation(t, 1)
		record := summarizetest.Record(c.Input(nil, 100_000))
		for _, p := range c.Changed {
			if !summaries.HasLine(record, events.RecordPathChanged, p) {
				t.Fatalf("changed %q is not in the record:\n%s", p, summaries.RecordText(record))
			}
		}
		for _, u := range c.Users {
			text := strings.TrimSuffix(snippet.Inert(snippet.Clip(u, 300)), snippet.Ellipsis)
			if !slices.ContainsFunc(record, func(r events.RecordLine) bool {
				return r.Kind == events.RecordUser && strings.Contains(unlabelled(r.Text), text)
			}) {
				t.Fatalf("user message %q is not in the record:\n%s", u, summaries.RecordText(record))
			}
		}
	})
}

// unlabelled is a line without the label of text that others wrote.
func unlabelled(s string) string { return strings.Replace(s, "attached text: ", "", 1) }

// Data URLs that follow one another are an image each: the end of the first does not
// take the beginning of the next, whose rest would read as the definition of a link.
func TestDataURLsInARow(t *testing.T) {
	const image = "data:image/png;base64,AAAA=="
	for text, want := range map[string]string{
		image + image:                    "[image][image]",
		image + ": the same":             "attached text: [image]: the same", // a definition of "image" as it is shown
		"see " + image + image + " here": "see [image][image] here",
	} {
		record := summarizetest.Record(summarize.Input{MaxUnits: 100_000, Messages: []summarize.Message{
			{Turn: 1, Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: text}}}},
		}})
		if !summaries.HasLine(record, events.RecordUser, want) {
			t.Errorf("of %q the record has %s", text, summaries.RecordText(record))
		}
	}
}

// A line of the text, without the marks around it, stands in the messages or in
// the previous summary.
func TestNothingIsInvented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := summaries.DrawConversation(t, 1)
		second := summaries.DrawConversation(t, 40)
		known := snippet.Plain(first.Source.String() + second.Source.String())
		known += "\n" + snippet.Neutral(known)
		var previous *events.Summary
		for _, c := range []*summaries.Conversation{first, second} {
			s, err := extract.New().Summarize(t.Context(), c.Input(previous, rapid.Int64Range(300, 20_000).Draw(t, "max")))
			if err != nil {
				continue
			}
			for l := range strings.Lines(s.Text) {
				for _, p := range quoted(l) {
					if !strings.Contains(known, p) {
						t.Fatalf("%q of line %q is in no message", p, l)
					}
				}
			}
			for _, r := range s.Record {
				for _, p := range quoted("- " + r.Text) {
					if !strings.Contains(known, p) {
						t.Fatalf("%q of the record is in no message", p)
					}
				}
			}
			previous = s
		}
	})
}

// quoted returns the pieces of a line that come from messages.
func quoted(l string) []string {
	l, ok := strings.CutPrefix(strings.TrimSpace(l), "- ")
	if !ok || foldLine.MatchString(l) {
		return nil // a heading, or turns of ours
	}
	l = strings.TrimPrefix(turnSuffix.ReplaceAllString(l, ""), "quoted: ")
	for _, label := range []string{"First: ", "Latest: ", "[ ] "} {
		l = strings.TrimPrefix(l, label)
	}
	l = strings.TrimSuffix(strings.TrimSuffix(l, ": changed"), ": read")
	for _, tool := range summaries.Tools { // TOOL: its output
		l = strings.TrimPrefix(l, tool+": ")
	}
	for _, label := range []string{"attached text:", "not the user's words:", "unverified, no user wrote this:"} { // a cut may end behind one
		l = strings.Replace(l, label, "|", 1)
	}
	var out []string
	for _, p := range strings.FieldsFunc(l, func(r rune) bool { return r == '`' || r == '|' || r == '…' }) {
		p = attachedNote.ReplaceAllString(p, "")
		p = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(p, ": "), ":"))
		out = append(out, p)
	}
	return out
}

// attachedNote is behind the user's own words of a message with others, cut or whole.
var attachedNote = regexp.MustCompile(`\s*\((?:a(?:n(?:d(?: a?t?t?a?c?h?e?d?(?: t?e?x?t?\)?)?)?)?)?)?$`)

var foldLine = regexp.MustCompile(`^\d+ more, recall turns? ([\d, -]+)`)

// turnSuffix names the turns at the end of a line of a summary.
var turnSuffix = regexp.MustCompile(` \((?:turns? \d{1,10}(?:-\d{1,10})?(?:, later succeeded)?|later succeeded)\)$`)
