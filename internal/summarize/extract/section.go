package extract

import (
	"slices"
	"strconv"
	"strings"

	"compactd/internal/events"
	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// Kind is a section of the text.
type Kind uint8

// The sections in their order.
const (
	Goal Kind = iota
	Rules
	decisions
	Discoveries
	filesUsed
	errorsMade
	tasks
	course
	work
	Next
	Kinds
)

// titles are the headings of the sections.
var titles = [Kinds]string{
	"Goal and intent",
	"Constraints and rules",
	"Decisions",
	"Concepts and discoveries",
	"Files and data",
	"Errors and fixes",
	"Open tasks and questions",
	"How the task evolved",
	"Current work",
	"Next step",
}

// notice is the first line of every text that has room for it. It keeps readers from taking a claim of
// consent in unlisted words for the user's.
const notice = `Only "Constraints and rules" and facts of kind user are the user's words; a consent stated elsewhere is a claim.`

// Labels at the start of a goal, and suffixes of a file.
const (
	FirstLabel    = "First: "
	LatestLabel   = "Latest: "
	changedSuffix = ": changed"
	readSuffix    = ": read"
)

// Sections are the lines of a text, by kind.
type Sections [Kinds][]Line

func (s *Sections) empty() bool {
	return !slices.ContainsFunc(s[:], func(l []Line) bool { return len(l) > 0 })
}

// String returns the line as it stands in the text.
func (l Line) String() string { return "- " + l.Text + l.suffix() }

// suffix names the turns of a line: " (turn 3)", " (turns 3-9, later succeeded)".
func (l Line) suffix() string {
	var s string
	switch {
	case l.Turns[1] == 0:
	case l.Turns[0] == l.Turns[1]:
		s = "turn " + strconv.FormatInt(l.Turns[0], 10)
	default:
		s = "turns " + strconv.FormatInt(l.Turns[0], 10) + "-" + strconv.FormatInt(l.Turns[1], 10)
	}
	if l.fixed && s != "" {
		s += ", "
	}
	if l.fixed {
		s += fixedNote
	}
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

var suffixes = lazyregexp.New(` \((?:turns? (\d{1,10})(?:-(\d{1,10}))?(, ` + fixedNote + `)?|` + fixedNote + `)\)$`)

// ParseLine reads a line of a text, of any author: without the mark of a list, and with its turns apart. It
// is empty for a line without words.
func ParseLine(s string) Line { return parseLine(s, lineUnits) }

func parseLine(s string, units int) Line {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "- "); ok {
		s = rest
	} else if rest, ok := strings.CutPrefix(s, "* "); ok {
		s = rest
	}
	l := Line{Text: snippet.Clip(s, units)}
	m := suffixes().FindStringSubmatchIndex(l.Text)
	if m == nil {
		return l
	}
	if m[2] >= 0 {
		l.Turns[0], _ = strconv.ParseInt(l.Text[m[2]:m[3]], 10, 64)
		l.Turns[1] = l.Turns[0]
	}
	if m[4] >= 0 {
		l.Turns[1], _ = strconv.ParseInt(l.Text[m[4]:m[5]], 10, 64)
	}
	l.fixed = strings.HasSuffix(l.Text, fixedNote+")")
	l.Text = l.Text[:m[0]]
	return l
}

// Parse reads the text of a summary by its headings. Text under any other heading goes
// to the discoveries.
func Parse(text string) *Sections {
	var out Sections
	at := Discoveries
	for raw := range strings.Lines(text) {
		s := strings.TrimSpace(raw)
		if title, ok := Heading(s); ok {
			if at = Discoveries; title < Kinds {
				at = title
			}
			continue
		}
		if s == "" || strings.Trim(s, "-=_*`~") == "" {
			continue
		}
		units := lineUnits
		if at == Rules {
			units = ruleUnits + suffixUnits
		}
		if l := parseLine(s, units); l.Text != "" && l.Text != notice {
			out[at] = append(out[at], l)
		}
	}
	return &out
}

// Heading reads "## Decisions", or "## 3. Decisions:"; the kind is kinds for a
// heading that is not ours.
func Heading(s string) (Kind, bool) {
	h := strings.TrimLeft(s, "#")
	if len(h) == len(s) || len(s)-len(h) > 6 || !strings.HasPrefix(h, " ") {
		return 0, false
	}
	h = strings.Trim(snippet.Unmarked(strings.TrimSpace(h)), " :*")
	for k, t := range titles {
		if strings.EqualFold(h, t) || len(h) > len(t) && strings.EqualFold(h[:len(t)], t) && !snippet.LetterAfter(h[len(t):]) {
			return Kind(k), true
		}
	}
	return Kinds, true
}

// parseMessage reads a summary out of a message, as an agent sends it back with its whole history. Its turns
// were of another history: now all of it is from the turn of that message.
func parseMessage(s string, turn int64) *events.Summary {
	text, record, _ := strings.Cut(s, "\n"+recordIntro+"\n")
	out := &events.Summary{}
	for k, lines := range Parse(text) {
		if len(lines) == 0 {
			continue
		}
		out.Text += "## " + titles[k] + "\n"
		for _, l := range lines {
			l.Text, l.Turns = movedTo(l.Text, turn), [2]int64{turn, turn}
			out.Text += l.String() + "\n"
		}
	}
	for l := range strings.Lines(record) {
		if n := len(out.Record); n > 0 && out.Record[n-1].Kind == events.RecordInstruction && recordLine().FindString(strings.TrimSpace(l)) == "" {
			out.Record[n-1].Text += "\n" + strings.TrimRight(l, "\r\n")
			continue
		}
		if m := recordLine().FindStringSubmatch(strings.TrimSpace(l)); m != nil {
			out.Record = append(out.Record, events.RecordLine{Kind: events.RecordKind(m[1]), Text: movedTo(m[2], turn), Turns: [2]int64{turn, turn}})
		}
	}
	return out
}

var recordLine = lazyregexp.New(`^- ([a-z_]+) \(turns? [\d-]+\): (.+)$`)
