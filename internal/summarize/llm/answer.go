package llm

import (
	"slices"
	"strconv"
	"strings"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/snippet"
)

// Reason is the reason why the answer of a model cannot be used.
type Reason string

// The reasons.
const (
	ReasonEmpty      Reason = "empty"
	ReasonCut        Reason = "cut"         // the bound on its output was reached
	ReasonTool       Reason = "tool_call"   // it called a tool
	ReasonRefused    Reason = "refused"     // it, or a filter of its provider, declined
	ReasonStopped    Reason = "stopped"     // for an unknown reason
	ReasonForm       Reason = "bad_form"    // an analysis that does not end, or too few of the headings
	ReasonTooLarge   Reason = "too_large"   // far beyond what was requested
	ReasonNotSmaller Reason = "not_smaller" // than what it condenses
)

// Unusable is the answer of a model that makes no summary. It quotes nothing.
type Unusable struct{ Reason Reason }

func (e *Unusable) Error() string { return "unusable answer: " + string(e.Reason) }

// minHeadings is the least number of the ten headings in an answer; missing sections are taken from the
// messages.
const minHeadings = 6

// maxSectionLines bounds a section of an answer, from its beginning.
const maxSectionLines = 200

// maxAnswerBytes bounds the read part of an answer: 20,000 tokens are far less.
const maxAnswerBytes = 512 << 10

// checkFinish refuses an answer that did not end by itself (B20).
func checkFinish(r *model.Reply) error {
	switch {
	case r.Finish == model.FinishTool:
		return &Unusable{ReasonTool}
	case r.Finish == model.FinishRefusal:
		return &Unusable{ReasonRefused}
	case r.Finish == model.FinishLength:
		return &Unusable{ReasonCut}
	case r.Finish != model.FinishStop:
		return &Unusable{ReasonStopped}
	case strings.TrimSpace(r.Text) == "":
		return &Unusable{ReasonEmpty}
	case len(r.Text) > maxAnswerBytes:
		return &Unusable{ReasonTooLarge}
	}
	return nil
}

// answer is a model's text by section.
type answer struct {
	extract.Sections
	has [extract.Kinds]bool // headings
}

// readAnswer reads the sections of an answer, without the analysis before them
// (C2).
func readAnswer(text string) (*answer, error) {
	text = snippet.WithoutData(snippet.StripInvisible(text))
	if i := strings.LastIndex(text, "</analysis>"); i >= 0 {
		text = text[i+len("</analysis>"):]
	} else if strings.Contains(text, "<analysis>") {
		return nil, &Unusable{ReasonForm}
	}
	var out answer
	at, code, headings := extract.Kinds, false, 0
	for raw := range strings.Lines(text) {
		s := strings.TrimSpace(raw)
		if strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~") {
			code = !code
			continue
		}
		if k, ok := extract.Heading(s); ok && !code {
			if k < extract.Kinds {
				if !out.has[k] {
					headings++
				}
				at, out.has[k] = k, true
			} else if !strings.HasPrefix(s, "###") {
				at = extract.Discoveries // a section of its own making
			}
			continue
		}
		if at == extract.Kinds || len(out.Sections[at]) == maxSectionLines {
			continue
		}
		if l := answerLine(s); l.Text != "" {
			out.Sections[at] = append(out.Sections[at], l)
		}
	}
	if headings < minHeadings || !out.has[extract.Goal] {
		return nil, &Unusable{ReasonForm}
	}
	return &out, nil
}

// nothing lists the lines of an empty section.
var nothing = []string{"", "none", "none yet", "n/a", "nothing", "-", "keine", "<summary>", "</summary>"}

// answerLine reads one line; it is empty for one without words.
func answerLine(s string) extract.Line {
	if strings.Trim(s, "-=_*`~") == "" {
		return extract.Line{}
	}
	l := turnsApart(extract.ParseLine(strings.TrimSuffix(s, "</summary>")))
	if slices.Contains(nothing, strings.ToLower(strings.Trim(l.Text, " .*_()"))) {
		return extract.Line{}
	}
	l.Text = snippet.Neutral(l.Text)
	return l
}

// turnSuffix matches the turns that models name at the end of a line, in other forms than ours: "(turns 3, 5
// and 9).", "[turn 4]".
var turnSuffix = lazyregexp.New(`(?i)\s*[(\[]turns? (\d[\d\s,;&–-]*(?:(?:and|to) [\d\s,;&–-]+)*)[)\]]\.?$`)

var numbers = lazyregexp.New(`\d+`)

// turnsApart takes the turns of a line from its end.
func turnsApart(l extract.Line) extract.Line {
	for {
		m := turnSuffix().FindStringSubmatchIndex(l.Text)
		if m == nil {
			return l
		}
		for _, n := range numbers().FindAllString(l.Text[m[2]:m[3]], -1) {
			if turn, err := strconv.ParseInt(n, 10, 64); err == nil {
				l.Turns = extract.JoinTurns(l.Turns, [2]int64{turn, turn})
			}
		}
		l.Text = l.Text[:m[0]]
	}
}
