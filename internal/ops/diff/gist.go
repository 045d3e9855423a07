package diff

import (
	"fmt"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// maxGist is the length of a shown part, in characters.
const maxGist = 200

// Gist is a message in one line: its texts, calls and results, each by its first line.
func Gist(m dialect.Message) string {
	var out []string
	for _, p := range m.Parts {
		switch p.Kind {
		case dialect.PartText:
			out = append(out, FirstLine(p.Text))
		case dialect.PartCall:
			out = append(out, FirstLine(fmt.Sprintf("call %s %s", p.Tool, p.Args)))
		case dialect.PartResult:
			out = append(out, "result: "+FirstLine(p.Text))
		case dialect.PartThinking:
			out = append(out, "(thinking)")
		case dialect.PartImage:
			out = append(out, "(image)")
		default:
			out = append(out, "(other)")
		}
	}
	return strings.Join(out, " | ")
}

// FirstLine is the beginning of a text, without what a terminal might obey.
func FirstLine(s string) string {
	s, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > maxGist {
		s, rest = string(r[:maxGist]), "more"
	}
	if s = term.Line(s); rest != "" {
		s += " …"
	}
	return s
}

// Because names why and how a history was compacted.
func Because(reason events.Reason, stages []events.Stage) string {
	text := "for " + strings.ReplaceAll(string(reason), "_", " ")
	if len(stages) > 0 {
		text += ", by " + units.List(stages)
	}
	return text
}

// Stages are those of compactions, in the order in which they run.
var Stages = []events.Stage{events.StagePrune, events.StageDeduplicate, events.StageSummarize, events.StageTruncate}

// Used names the stages that took part in so many compactions.
func Used(times map[events.Stage]int) string {
	var out []string
	for _, s := range Stages {
		if n := times[s]; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", s, n))
		}
	}
	return strings.Join(out, ", ")
}

// Estimate returns what counts messages of a dialect, by the profile default.
func Estimate(f events.Format) func(...dialect.Message) int64 {
	provider := "openai"
	if f == events.Anthropic {
		provider = "anthropic"
	}
	rate := measure.NewRate(measure.Profiles["default"], provider)
	return func(messages ...dialect.Message) int64 {
		var t measure.Tokens
		for _, m := range messages {
			t += rate.Message(m)
		}
		return int64(t)
	}
}
