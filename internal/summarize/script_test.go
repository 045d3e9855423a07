package summarize_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/summarizetest"
)

// The scripts under testdata show what becomes of small conversations; go test
// -rewrite writes what becomes of them now. Commands:
//
//	summarize format= max= focus= merge    the message of a summary; merge goes on from the last one
//	record format= max=                    the record alone
//	text                                   a text that a model wrote takes the place of the last one's
//	user                                   what the user wrote in a text
//
// The lines of summarize and record are a turn and a message in its dialect.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Ext(path) != ".txt" || filepath.Dir(path) != "testdata" { // directories are other tests
			return
		}
		var last *events.Summary
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "user":
				return fmt.Sprintf("%q\n", userText(d.Input))
			case "text":
				last = &events.Summary{Text: d.Input}
				return "ok\n"
			}
			in := summarize.Input{Format: events.Anthropic, MaxUnits: 8_000}
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "format":
					in.Format = events.Format(a.Vals[0])
				case "max":
					in.MaxUnits, _ = strconv.ParseInt(a.Vals[0], 10, 64)
				case "focus":
					in.Focus = strings.Join(a.Vals, " ")
				case "merge":
					in.Previous = last
				default:
					d.Fatalf(t, "unknown argument %s", a.Key)
				}
			}
			in.Messages = scriptMessages(t, in.Format, d.Input)
			if d.Cmd == "record" {
				return recordText(summarizetest.Record(in))
			}
			s, err := extract.New().Summarize(t.Context(), in)
			switch {
			case errors.Is(err, summarize.ErrNothing), errors.Is(err, summarize.ErrNoRoom):
				return err.Error() + "\n"
			case err != nil:
				t.Fatal(err)
			}
			last = s
			text := s.Message().Parts[0].Text
			_, body, _ := strings.Cut(text, "<condensed-summary>\n")
			return fmt.Sprintf("%d units\n%s\n", events.Units(text), blankLines(body))
		})
	})
}

// blankLines writes a blank line as a dot: a blank line would end the expectation.
func blankLines(s string) string { return strings.ReplaceAll(s, "\n\n", "\n.\n") }

func scriptMessages(t *testing.T, f events.Format, input string) []summarize.Message {
	t.Helper()
	var out []summarize.Message
	index := map[int64]int64{}
	for l := range strings.Lines(input) {
		number, raw, _ := strings.Cut(strings.TrimSpace(l), " ")
		turn, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		m, err := f.Read(events.Raw(raw))
		if err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		out = append(out, summarize.Message{Turn: turn, Index: index[turn], Message: m})
		index[turn]++
	}
	return out
}

func recordText(record []events.RecordLine) string {
	var b strings.Builder
	for _, r := range record {
		b.WriteString(r.String() + "\n")
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}
