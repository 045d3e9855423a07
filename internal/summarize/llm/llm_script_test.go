package llm_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
	"compactd/internal/testkit/summaries"
)

// C1 to C3, B17, B18: the scripts show the prompts of a model and what becomes of
// its answer. A change of the prompts changes the version, and is read here as a
// difference. Commands:
//
//	version                                    of the instructions
//	prompt format= window= output= focus= merge    the prompt; with too-long, those that follow when it is refused
//	answer max= merge                          the messages, a line "====", and what the model writes
//
// Messages are as in TestScripts; merge goes on from the last summary.
func TestLLMScripts(t *testing.T) {
	var last *events.Summary
	datadriven.RunTest(t, "testdata/prompts.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "version" {
			return llm.PromptVersion + "\n"
		}
		format := events.Anthropic
		in := summarize.Input{MaxUnits: 8_000}
		limits, kind := summaries.Wide, model.Auth
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "format":
				format = events.Format(a.Vals[0])
			case "max":
				in.MaxUnits, _ = strconv.ParseInt(a.Vals[0], 10, 64)
			case "window":
				limits.Window, _ = strconv.ParseInt(a.Vals[0], 10, 64)
			case "output":
				limits.MaxOutput, _ = strconv.ParseInt(a.Vals[0], 10, 64)
			case "focus":
				in.Focus = strings.Join(a.Vals, " ")
			case "merge":
				in.Previous = last
			case "too-long":
				kind = model.TooLong
			default:
				d.Fatalf(t, "unknown argument %s", a.Key)
			}
		}
		messages, text, _ := strings.Cut(d.Input, "\n====\n")
		in.Messages = summaries.Messages(t, format, messages)
		switch d.Cmd {
		case "prompt":
			m := summaries.Always("mute", model.Reply{}, &model.Error{Kind: kind})
			m.Bounds = limits
			if _, err := useModels(m).Summarize(t.Context(), in); err != nil {
				return err.Error() + "\n"
			}
			var b strings.Builder
			for _, r := range m.Requests {
				fmt.Fprintf(&b, "at most %d tokens\n%s", r.MaxOutputTokens, summaries.BlankLines(r.User))
			}
			return b.String()
		case "answer":
			var seen []summarize.Attempt
			in.OnAttempt = func(a summarize.Attempt) { seen = append(seen, a) }
			s, err := llm.New(summaries.Always("scripted", summaries.Finished(text), nil)).Summarize(t.Context(), in)
			if err != nil {
				return err.Error() + "\n"
			}
			last = s
			if len(seen) == 0 || seen[0].Err != nil {
				return fmt.Sprintf("%s: %v\n", s.Model, seen)
			}
			return summaries.BlankLines(s.Text)
		default:
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		}
	})
}

// C5, C6 on the recorded sessions: a model that repeats what it reads has a usable
// answer for each long one, in one go and in ten merges; the record keeps every
// changed path.
func TestLLMRealSessions(t *testing.T) {
	for _, s := range summaries.RealSessions(t) {
		msgs := summaries.SessionMessages(t, s)
		if len(msgs) < summaries.LongSession {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			part := msgs[:len(msgs)*7/10]
			m := summaries.Echo()
			in := summarize.Input{Messages: part, MaxUnits: 40_000}
			got, err := useModels(m).Summarize(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			summaries.CheckSize(t, got, in.MaxUnits)
			if got.Model != "fake/echo" {
				t.Errorf("written by %s", got.Model)
			}
			r := summaries.RetentionOf(part, got.Message().Parts[0].Text)
			if r.Changed.Kept < r.Changed.All {
				t.Errorf("changed paths are lost: %s", r)
			}
			prompt := m.Requests[0].User
			t.Logf("%d messages: a prompt of %d bytes with %d entries; %s; %d times [unverified]", len(part), len(prompt),
				len(summaries.ReadMaterial(prompt).Entries), r, strings.Count(got.Text, "[unverified]"))
			var previous *events.Summary
			var sizes []int
			for i := range 10 {
				in := summarize.Input{Messages: msgs[len(msgs)*i/10 : len(msgs)*(i+1)/10], Previous: previous, MaxUnits: 12_000}
				if previous, err = useModels(summaries.Echo()).Summarize(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				summaries.CheckSize(t, previous, in.MaxUnits)
				sizes = append(sizes, codec.Units(previous.Message().Parts[0].Text))
			}
			t.Logf("ten merges, room 12000: %v units; %s", sizes, summaries.RetentionOf(msgs, previous.Message().Parts[0].Text))
		})
	}
}
