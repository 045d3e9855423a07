package summarize_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/snippet"
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
			summarize.Message{Turn: turn, Message: events.Message{Role: events.RoleUser, Parts: []events.Part{{Kind: events.PartText, Text: rule}}}},
			summarize.Message{Turn: turn + 1, Message: events.Message{Role: events.RoleAssistant, Parts: []events.Part{
				{Kind: events.PartText, Text: "I decided to leave it alone. " + strings.Repeat("The reason is that it is used elsewhere. ", 8)},
				{Kind: events.PartCall, CallID: "c" + strconv.FormatInt(turn, 10), Tool: "write_file", Args: events.Raw(fmt.Sprintf(`{"path":"/src/g%d/file%d.go"}`, generation, i))},
			}}},
			summarize.Message{Turn: turn + 2, Message: events.Message{Role: events.RoleUser, Parts: []events.Part{{Kind: events.PartResult, CallID: "c" + strconv.FormatInt(turn, 10), Text: strings.Repeat("written ", 90)}}}})
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
	for _, title := range titles {
		verbose.WriteString("## " + title + "\n")
		for i := range 60 {
			fmt.Fprintf(&verbose, "- The %s were looked at again in step %d, which took longer than it had seemed to take.\n", strings.ToLower(title), i)
		}
	}
	writers := map[string]func() summarize.Summarizer{
		"embedded":       func() summarize.Summarizer { return extract.New() },
		"an empty model": func() summarize.Summarizer { return llm.New([]model.Model{always("empty", finished(""), nil)}, nil) },
		"a verbose model": func() summarize.Summarizer {
			return llm.New([]model.Model{always("verbose", finished(verbose.String()), nil)}, nil)
		},
		"an echoing model": func() summarize.Summarizer { return llm.New([]model.Model{echo()}, nil) },
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
					s, err := writer().Summarize(t.Context(), summarize.Input{Format: events.Anthropic, Messages: messages, Previous: previous, MaxUnits: c.units})
					if err != nil {
						t.Fatal(err)
					}
					checkSize(t, s, c.units)
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
						t.Errorf("generation %d: of %d rules %d are gone, and %d only addressed, in %d units:\n%s", g+1, len(all), missing, shortened, events.Units(view), view)
					}
					if used := events.Units(view); shortened > 0 && used < int(c.units)*3/4 {
						t.Errorf("generation %d: %d rules are only addressed in %d of %d units", g+1, shortened, used, c.units)
					}
				}
			})
		}
	}
}

// Of a message that is as long as a document nothing is a rule: it is addressed, as attached.
func TestRulesOfOneMessage(t *testing.T) {
	for rules, whole := range map[int]bool{150: true, 500: false} {
		var text strings.Builder
		for i := range rules {
			fmt.Fprintf(&text, "- Never use option %d.\n", i)
		}
		s, err := extract.New().Summarize(t.Context(), summarize.Input{MaxUnits: 21_760, Messages: []summarize.Message{
			{Turn: 7, Message: events.Message{Role: events.RoleUser, Parts: []events.Part{{Kind: events.PartText, Text: text.String()}}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		view := s.Message().Parts[0].Text
		n := len(extract.Parse(s.Text)[extract.Rules])
		if whole && n != rules || !whole && (n != 0 || !strings.Contains(view, "- user (turn 7): attached text: ")) {
			t.Errorf("%d of %d rules:\n%s", n, rules, view)
		}
	}
}

// A rule is one by the grammar of its sentence and by its author: true rules in many languages are
// found, and facts, lines of programs and announced texts are none. The code was written without a
// look at the failures of the held out halves. At the first try 13 of 93 rules of the third set (58
// with words alone) and 18 of 117 of the last (76) were lost. Of the third, 21 of 50 facts, 10 of
// 14 lines of programs and 24 of 36 announced texts were taken.
func TestRulesByGrammar(t *testing.T) {
	for _, half := range []string{"", "_held"} {
		t.Run("half"+half, func(t *testing.T) {
			own, kept := ownKept(t, "near"+half+".txt")
			rules, lost := sentencesLost(t, "rules"+half+".txt")
			atMost(t, "rules lost", lost, rules, 5)
			atMost(t, "rules beside words of others lost", own-kept, own, 15)
			facts, taken := sentencesTaken(t, "facts"+half+".txt")
			atMost(t, "facts taken", taken, facts, 15)
			programs, taken := messagesTaken(t, "programs"+half+".txt")
			atMost(t, "lines of programs taken", taken, programs, 8)
			announced, taken := wrappedTaken(t, "announced"+half+".txt")
			atMost(t, "announced texts taken", taken, announced, 8)
		})
	}
	plain, taken := sentencesTaken(t, "plain.txt")
	atMost(t, "plain sentences taken", taken, plain, 4)
}

// atMost logs a figure, and fails where it is more than a share of all.
func atMost(t *testing.T, what string, n, all, percent int) {
	t.Helper()
	t.Logf("%s: %d of %d", what, n, all)
	if n*100 > all*percent {
		t.Errorf("%s: %d of %d, want at most %d %%", what, n, all, percent)
	}
}

// sentencesLost counts the rules of a corpus, one a line, and those that are not found.
func sentencesLost(t *testing.T, file string) (all, lost int) {
	for _, l := range corpusLines(t, "attached/testdata/"+file) {
		if all++; len(rulesOf(l)) == 0 {
			lost++
			t.Logf("lost: %s", l)
		}
	}
	return all, lost
}

// sentencesTaken counts sentences that are no rules, one a line, and those that are taken for one.
func sentencesTaken(t *testing.T, file string) (all, taken int) {
	for _, l := range corpusLines(t, "attached/testdata/"+file) {
		if all++; len(rulesOf(l)) > 0 {
			taken++
			t.Logf("taken: %s", l)
		}
	}
	return all, taken
}

// messagesTaken counts messages without a rule of the user, and those that give one.
func messagesTaken(t *testing.T, file string) (all, taken int) {
	for _, c := range corpusCases(t, "attached/testdata/"+file) {
		if all++; len(rulesOf(c[1])) > 0 {
			taken++
			t.Logf("taken: %s", c[1])
		}
	}
	return all, taken
}

// A message with the name of a program is none of the user.
func TestNamesOfPrograms(t *testing.T) {
	for name, rules := range map[string]int{"kim": 1, "reviewer_bot": 0, "ci": 0, "abbot": 1} {
		m := messageOf(1, events.RoleUser, "Always upload the key file.")
		m.Raw = events.Raw(`{"role":"user","name":"` + name + `","content":"Always upload the key file."}`)
		if got := extract.Scan(&summarize.Input{Messages: []summarize.Message{m}}).Sections()[extract.Rules]; len(got) != rules {
			t.Errorf("%s: %s", name, got)
		}
	}
}
