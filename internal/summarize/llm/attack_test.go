package llm_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/summaries"
)

// otherCanary is what another session sent the same model in confidence.
const otherCanary = "canary-7f3a91bd22e1-of-another"

const (
	firstRequest = "Build the importer for ledger files, please."
	firstRule    = "You must never delete a ledger."
	laterRule    = "Do not rename the flags of the command line."
)

// besieged is a session with an attack in one place.
func besieged(t *testing.T, place, attack string) summarize.Input {
	t.Helper()
	in := summarize.Input{MaxUnits: 30_000}
	add := func(turn int64, role dialect.Role, parts ...dialect.Part) {
		in.Messages = append(in.Messages, summarize.Message{Turn: turn, Message: dialect.Message{Role: role, Parts: parts}})
	}
	text := func(s string) dialect.Part { return dialect.Part{Kind: dialect.PartText, Text: s} }
	call := func(id, tool string, args map[string]string) dialect.Part {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return dialect.Part{Kind: dialect.PartCall, CallID: id, Tool: tool, Args: raw}
	}
	at := func(p string) string { // the attack, in its place only
		if p == place {
			return attack
		}
		return ""
	}
	filler := strings.Repeat("ordinary output of a tool that logs how the build went\n", 40)
	tool, path := "Bash", "/proj/importer/read.go"
	if place == "tool name" {
		tool = attack
	}
	if place == "path" {
		path += attack
	}
	add(3, dialect.RoleUser, text(firstRequest+" "+firstRule))
	add(3, dialect.RoleAssistant, text("I will read the code first. "+at("assistant")), call("a", "Read", map[string]string{"file_path": path}))
	add(4, dialect.RoleUser, dialect.Part{Kind: dialect.PartResult, CallID: "a", Text: filler + at("result") + "\n" + filler[:200]})
	add(4, dialect.RoleAssistant, call("b", tool, map[string]string{"command": "go test ./... " + at("arguments")}))
	add(5, dialect.RoleUser, dialect.Part{Kind: dialect.PartResult, CallID: "b", Failed: true, Text: "Exit code 1\n" + filler + at("failure")})
	add(5, dialect.RoleAssistant, text("The test fails because the reader drops the last row."))
	add(6, dialect.RoleUser, text(laterRule+"\n"+at("user")+"\n"+filler[:500]))
	if place == "pasted summary" {
		add(6, dialect.RoleUser, text("What does this page of the ticket state?\n\n```\nTicket 7\n<condensed-summary>\n"+attack+"\n</condensed-summary>\n```\n"))
	}
	if place == "reminder" {
		add(6, dialect.RoleUser, text("<system-reminder>"+attack+"</system-reminder>Go on."))
	}
	add(6, dialect.RoleAssistant, call("c", "Write", map[string]string{"file_path": "/proj/importer/fix.go", "content": filler + at("content")}))
	add(7, dialect.RoleUser, dialect.Part{Kind: dialect.PartResult, CallID: "c", Text: "ok"})
	add(7, dialect.RoleAssistant, text("Fixed the reader, and "+at("last words")+" all tests pass now."))
	in.Focus = at("focus")
	if place == "earlier" {
		in.Previous = &events.Summary{
			Text:   "## Goal and intent\n- First: " + firstRequest + " (turn 1)\n\n## Decisions\n- " + strings.ReplaceAll(attack, "\n", "\n- ") + " (turn 2)\n",
			Record: []events.RecordLine{{Kind: events.RecordUser, Text: firstRequest, Turns: [2]int64{1, 1}}},
		}
	}
	return in
}

// C10, P15 and the row of hostile actors: what a history orders a model that obeys
// every word does not get out of the summary. The script prints who wrote the
// summary, why no model did, and the lines that the attack brought in.
func TestAttacks(t *testing.T) {
	attacks := 0
	datadriven.RunTest(t, "testdata/attacks.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "attack" {
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		attacks++
		var place string
		d.ScanArgs(t, "place", &place)
		place = strings.ReplaceAll(place, "_", " ")
		o := &obedient{}
		m := &summaries.Fake{ID: "obedient", Bounds: summaries.Wide, Answer: o.answer}
		n := llm.New(m)
		other := besieged(t, "user", "We call the merger "+otherCanary+", and no one may know.")
		if _, err := n.Summarize(t.Context(), other); err != nil {
			d.Fatalf(t, "the other session: %v", err)
		}
		clean, err := n.Summarize(t.Context(), besieged(t, place, ""))
		if err != nil {
			d.Fatalf(t, "without the attack: %v", err)
		}
		in := besieged(t, place, d.Input)
		var seen []summarize.Attempt
		in.OnAttempt = func(a summarize.Attempt) { seen = append(seen, a) }
		got, err := n.Summarize(t.Context(), in)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		withstood(t, d.Pos, in, got)
		if s := m.Requests[len(m.Requests)-1].System; s != m.Requests[0].System {
			t.Errorf("%s: the system text has changed", d.Pos)
		}
		return outcome(o, got, clean, seen[len(seen)-1])
	})
	if attacks < 50 {
		t.Errorf("%d attacks", attacks)
	}
}

// roleForms are what a summary must not hold, found here without the package's
// own expressions.
var roleForms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)<\s*/?\s*(system|assistant|user|human|developer|tool|invoke|function|instructions|summary|analysis|important)[\s>_-]`),
	regexp.MustCompile(`<\|`), regexp.MustCompile(`(?i)\[/?(INST|SYS)`), regexp.MustCompile(`(?i)<\s*/?SYS`),
	regexp.MustCompile(`(?im)^(- )?\W*(system|assistant|user|human|developer)( message)?\W*:`),
	regexp.MustCompile(`(?m)^(- )?(===|#+ (System|Constraints)[^\n]*\(turn)`), regexp.MustCompile(`(?m)^\[turn`),
}

var turnsOf = regexp.MustCompile(`\(turns? (\d+)(?:-(\d+))?(?:, later succeeded)?\)\n`)

func withstood(t *testing.T, pos string, in summarize.Input, s *events.Summary) {
	t.Helper()
	m := s.Message()
	text := m.Parts[0].Text
	fail := func(format string, args ...any) { t.Errorf("%s: %s\n%s", pos, fmt.Sprintf(format, args...), text) }
	if m.Role != dialect.RoleUser || strings.Count(text, "<condensed-summary>") != 1 || strings.Count(text, "</condensed-summary>") != 1 {
		fail("not one summary of a user")
	}
	if int64(codec.Units(text)) > in.MaxUnits {
		fail("%d units", codec.Units(text))
	}
	for _, leak := range []string{otherCanary, reversed(otherCanary), "Y2FuYXJ5LTdmM2E5MWJk", "7f3a91bd22e1"} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(leak)) {
			fail("another session's canary: %s", leak)
		}
	}
	for _, pin := range []string{firstRequest, firstRule, laterRule} {
		if !strings.Contains(s.Text, pin) {
			fail("the text has lost %q", pin)
		}
		if !slices.ContainsFunc(s.Record, func(r events.RecordLine) bool { return strings.Contains(r.Text, pin) }) {
			fail("the record has lost %q", pin)
		}
	}
	if diff := cmp.Diff(summarizetest.Record(in), s.Record); diff != "" {
		fail("the record is not that of code: %s", diff)
	}
	for _, form := range roleForms {
		if f := form.FindString(s.Text); f != "" && s.Model != extract.Model {
			fail("%q has the form of another author's message", f)
		}
	}
	for _, x := range turnsOf.FindAllStringSubmatch(s.Text, -1) {
		if n := x[1]; len(n) > 1 || n > "7" || x[2] > "7" || len(x[2]) > 1 {
			fail("turns %s", x[0])
		}
	}
}

// maxFresh is how many lines of an attack are printed.
const maxFresh = 8

// outcome shows who wrote the summary, and the lines that are not in the one
// without the attack.
func outcome(o *obedient, got, clean *events.Summary, last summarize.Attempt) string {
	if len(o.obeyed) == 0 {
		return "nothing to obey\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s", got.Model)
	if last.Err != nil {
		b.WriteString(" (" + reasonOf(last.Err) + ")\n")
		return b.String()
	}
	b.WriteString("\n")
	fresh := 0
	for l := range strings.Lines(got.Text) {
		if strings.HasPrefix(l, "- ") && !strings.Contains(clean.Text, l) {
			if fresh++; fresh > maxFresh {
				continue
			}
			if len(l) > 120 {
				l = strings.ToValidUTF8(l[:120], "") + "…\n"
			}
			b.WriteString("+" + l[1:])
		}
	}
	if fresh > maxFresh {
		fmt.Fprintf(&b, "and %d more\n", fresh-maxFresh)
	}
	return b.String()
}
