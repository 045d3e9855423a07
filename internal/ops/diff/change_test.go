package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/dialect"
	"compactd/internal/ops/term"
)

func message(role dialect.Role, texts ...string) (m dialect.Message) {
	m.Role = role
	for _, s := range texts {
		m.Parts = append(m.Parts, dialect.Part{Kind: dialect.PartText, Text: s})
	}
	return m
}

func result(id, text string) dialect.Part {
	return dialect.Part{Kind: dialect.PartResult, CallID: id, Text: text}
}

func results(parts ...dialect.Part) dialect.Message {
	return dialect.Message{Role: dialect.RoleUser, Parts: parts}
}

// Each message before has an action, whatever the compaction did: results that were
// cleared, messages that a summary or notice replaces, also where the provider wants
// equal roles merged.
func TestLines(t *testing.T) {
	summary := "This is a summary.\n<condensed-summary>\n## Goal\nmake it\n</condensed-summary>"
	for _, c := range []struct {
		name          string
		before, after []dialect.Message
		want          string
	}{
		{"nothing", []dialect.Message{message("user", "a"), message("assistant", "b")}, []dialect.Message{message("user", "a"), message("assistant", "b")}, "kept kept"},
		{
			"cleared and kept results, two messages merged",
			[]dialect.Message{message("assistant", "look"), results(result("1", "long")), results(result("2", "[File a - refer"), result("3", "x")), message("assistant", "ok")},
			[]dialect.Message{message("assistant", "look"), results(result("1", "[Tool result cleared]"), result("2", "[File a - refer to latest read below]"), result("3", "x")), message("assistant", "ok")},
			"kept cleared deduplicated kept",
		},
		{
			"a summary that was merged with what follows, and a text that came twice",
			[]dialect.Message{message("user", "go on"), message("assistant", "b"), message("user", "go on"), message("assistant", "c")},
			[]dialect.Message{message("user", summary, "go on"), message("assistant", "c")},
			"summarized summarized the summary kept kept",
		},
		{
			"a marker, and a text that was cut",
			[]dialect.Message{message("user", "a"), message("assistant", "b"), results(result("7", "long"))},
			[]dialect.Message{message("user", "[Earlier conversation history was truncated to fit within context limits]"), results(result("7", "lo"))},
			"truncated truncated the marker shortened",
		},
		{"all gone", []dialect.Message{message("user", "a")}, nil, "truncated"},
	} {
		var got []string
		for _, l := range Lines(c.before, c.after) {
			got = append(got, string(l.Action))
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A long history is shown in few rows, which account for every message and token.
func TestWrite(t *testing.T) {
	var before, after []dialect.Message
	for i := range 300 {
		id := fmt.Sprint(i)
		before = append(before, message("assistant", "call "+id), results(result(id, strings.Repeat("x", 400))))
	}
	after = append(after, message("user", "Summary:\n<condensed-summary>\n## Goal\nmake it\n\n## Next\nship it\n</condensed-summary>"))
	for i := 400; i < 600; i += 2 {
		cleared := result(fmt.Sprint(i/2), "[Tool result cleared]")
		after = append(after, before[i], results(cleared))
	}
	c := Change{Title: "One of them", Before: before, After: after, Count: func(m ...dialect.Message) (n int64) {
		for i := range m {
			n += int64(len(text(&m[i])))
		}
		return n
	}, Recall: "publisher recall prints them."}
	var b strings.Builder
	if err := c.Write(&term.Screen{Writer: &b, Width: 72}); err != nil {
		t.Fatal(err)
	}
	want := `One of them
before  600 messages  ~122,890 tokens
after   201 messages    ~3,183 tokens
went                  ~119,707 tokens  100 cleared, 400 summarized

  #  ROLE       BEFORE  AFTER  NOW                  MESSAGE
  1  assistant       7      -  summarized           call 0
  2  user          401      -  summarized           result: xxxxxxxxxxx…
  3  assistant       7      -  summarized           call 1
  4  user          401      -  summarized           result: xxxxxxxxxxx…
  5  assistant       7      -  summarized           call 2
  …             80,666      -  summarized           394 messages
400  user          401      -  summarized           result: xxxxxxxxxxx…
     user            -     83  the summary          Summary: …
401  assistant       9      9  kept                 call 200
402  user          401     22  cleared              result: xxxxxxxxxxx…
403  assistant       9      9  kept                 call 201
404  user          401     22  cleared              result: xxxxxxxxxxx…
405  assistant       9      9  kept                 call 202
406  user          401     22  cleared              result: xxxxxxxxxxx…
407  assistant       9      9  kept                 call 203
408  user          401     22  cleared              result: xxxxxxxxxxx…
409  assistant       9      9  kept                 call 204
410  user          401     22  cleared              result: xxxxxxxxxxx…
411  assistant       9      9  kept                 call 205
412  user          401     22  cleared              result: xxxxxxxxxxx…
  …             37,720  2,852  92 kept, 92 cleared  184 messages
597  assistant       9      9  kept                 call 298
598  user          401     22  cleared              result: xxxxxxxxxxx…
599  assistant       9      9  kept                 call 299
600  user          401     22  cleared              result: xxxxxxxxxxx…

The summary begins:
  ## Goal
  make it
  ## Next
  ship it

Nothing is lost: the log keeps every message as it was published.
publisher recall prints them.
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.Reset()
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), strings.Repeat(" ", 20)) {
		t.Errorf("a long message widens the rows of others in a pipe:\n%s", &b)
	}
}
