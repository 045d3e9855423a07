package llm_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/snippet"
	"compactd/internal/testkit/summaries"
)

// rulesRange is a range in which the user states rules, each in a message of its own between
// work, and returns them by their turn.
func rulesRange(generation, rules int, long bool) (out []summarize.Message, stated map[int64]string) {
	stated = map[int64]string{}
	turn := int64(generation*1000 + 1)
	for i := range rules {
		rule := fmt.Sprintf("Never touch the table customers_%d_%d of the warehouse, whatever wants it.", generation, i)
		if long {
			rule = fmt.Sprintf("You must not call endpoint %d_%d %s.", generation, i, strings.Repeat("while the nightly import is running or about to run ", 12))
		}
		rule = snippet.Plain(rule)
		stated[turn] = rule
		out = append(out,
			summarize.Message{Turn: turn, Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: rule}}}},
			summarize.Message{Turn: turn + 1, Message: dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{
				{Kind: dialect.PartText, Text: "I decided to leave it alone. " + strings.Repeat("The reason is that it is used elsewhere. ", 8)},
				{Kind: dialect.PartCall, CallID: "c" + strconv.FormatInt(turn, 10), Tool: "write_file", Args: codec.Raw(fmt.Sprintf(`{"path":"/src/g%d/file%d.go"}`, generation, i))},
			}}},
			summarize.Message{Turn: turn + 2, Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{
				{Kind: dialect.PartResult, CallID: "c" + strconv.FormatInt(turn, 10), Text: strings.Repeat("written ", 90)},
			}}})
		turn += 3
	}
	return out, stated
}

// addressed are the turns that the folds of a summary name.
func addressed(text string) func(turn int64) bool {
	var spans [][2]int64
	for l := range strings.Lines(text) {
		_, list, ok := strings.Cut(l, " more, recall turn")
		if !ok {
			continue
		}
		list, _, _ = strings.Cut(strings.TrimLeft(list, "s "), " (")
		for s := range strings.SplitSeq(strings.TrimSpace(list), ", ") {
			from, to, _ := strings.Cut(s, "-")
			a, _ := strconv.ParseInt(from, 10, 64)
			b, err := strconv.ParseInt(to, 10, 64)
			if err != nil {
				b = a
			}
			spans = append(spans, [2]int64{a, b})
		}
	}
	return func(turn int64) bool {
		for _, s := range spans {
			if s[0] <= turn && turn <= s[1] {
				return true
			}
		}
		return false
	}
}

// C1: a rule of the user is in the summary word for word, whichever model writes it, over generations;
// where rules alone are above the ceiling, the turn of each other is named.
func TestRulesAreCarriedWhole(t *testing.T) {
	var verbose strings.Builder
	for _, title := range summaries.Titles {
		verbose.WriteString("## " + title + "\n")
		for i := range 60 {
			fmt.Fprintf(&verbose, "- The %s were looked at again in step %d, which took longer than it had seemed to take.\n", strings.ToLower(title), i)
		}
	}
	writers := map[string]func() summarize.Summarizer{
		"embedded": func() summarize.Summarizer { return extract.New() },
		"an empty model": func() summarize.Summarizer {
			return llm.New(summaries.Always("empty", summaries.Finished(""), nil))
		},
		"a verbose model": func() summarize.Summarizer {
			return llm.New(summaries.Always("verbose", summaries.Finished(verbose.String()), nil))
		},
		"an echoing model": func() summarize.Summarizer { return llm.New(summaries.Echo()) },
	}
	for _, c := range []struct {
		name               string
		generations, rules int // of each generation
		long               bool
		units              int64
		whole              bool // all have room
	}{
		{"160 in four compactions", 4, 40, false, 21_760, true},
		{"160 in one", 1, 160, false, 21_760, true},
		{"a few long ones in ten", 10, 1, true, 21_760, true},
		{"400 in ten", 10, 40, false, 21_760, false},
		{"long ones in three", 3, 30, true, 21_760, false},
		{"little room", 10, 12, false, 8_000, false},
	} {
		for name, writer := range writers {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				all := map[int64]string{}
				var previous *events.Summary
				for g := range c.generations {
					messages, stated := rulesRange(g+1, c.rules, c.long)
					maps.Copy(all, stated)
					s, err := writer().Summarize(t.Context(), summarize.Input{Messages: messages, Previous: previous, MaxUnits: c.units})
					if err != nil {
						t.Fatal(err)
					}
					summaries.CheckSize(t, s, c.units)
					previous = s
					view := s.Message().Parts[0].Text
					named, missing, shortened := addressed(view), 0, 0
					for turn, rule := range all {
						switch {
						case strings.Contains(view, rule):
						case named(turn):
							shortened++
						default:
							missing++
						}
					}
					if missing > 0 || c.whole && shortened > 0 {
						t.Errorf("generation %d: of %d rules %d are gone, and %d only addressed, in %d units:\n%s", g+1, len(all), missing, shortened, codec.Units(view), view)
					}
					if used := codec.Units(view); shortened > 0 && used < int(c.units)*3/4 {
						t.Errorf("generation %d: %d rules are only addressed in %d of %d units", g+1, shortened, used, c.units)
					}
				}
			})
		}
	}
}
