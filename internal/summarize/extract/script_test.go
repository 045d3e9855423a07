package extract_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/summaries"
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
				return fmt.Sprintf("%q\n", summaries.UserText(d.Input))
			case "text":
				last = &events.Summary{Text: d.Input}
				return "ok\n"
			}
			format := events.Anthropic
			in := summarize.Input{MaxUnits: 8_000}
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "format":
					format = events.Format(a.Vals[0])
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
			in.Messages = summaries.Messages(t, format, d.Input)
			if d.Cmd == "record" {
				return summaries.RecordText(summarizetest.Record(in))
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
			return fmt.Sprintf("%d units\n%s\n", codec.Units(text), summaries.BlankLines(body))
		})
	})
}
