package main

import (
	"errors"
	"fmt"
	"strings"
)

// Markers that the generated part of a document stands between.
const (
	Begin = "<!-- figures: begin, written by make reliability -->"
	End   = "<!-- figures: end -->"
)

// Table writes the promises with the figures that were printed, as a table in
// Markdown. A test without figures is shown as missing; missed counts those, and
// those whose figures are not what is demanded.
func Table(promises []Promise, all []Figures) (table string, missed int, err error) {
	var b strings.Builder
	b.WriteString("| # | promise | test | tier | figures | demanded | |\n|---|---|---|---|---|---|---|\n")
	for _, p := range promises {
		id, text := p.Row, p.Text
		for _, s := range p.Shown {
			figures, verdict, err := s.judge(p.Row, all)
			if err != nil {
				return "", 0, err
			}
			if verdict != "met" && verdict != "" {
				missed++
			}
			fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %s | %s |\n", id, text, s.Test, s.Tier, figures, code(s.Demands), verdict)
			id, text = "", ""
		}
	}
	return b.String(), missed, nil
}

// judge finds the figures of a test, and says whether they are what is demanded.
func (s *Shown) judge(row string, all []Figures) (figures, verdict string, err error) {
	f := s.find(row, all)
	if f == nil {
		return "", "**missing**", nil
	}
	if why, ok := f.value("skipped"); ok {
		return strings.ReplaceAll(why, "_", " "), "**skipped**", nil
	}
	for _, d := range s.Demands {
		ok, err := f.Meets(d)
		if err != nil {
			return "", "", fmt.Errorf("%s of %s: %w", s.Test, row, err)
		}
		if !ok {
			verdict = "**missed**"
		}
	}
	if verdict == "" && len(s.Demands) > 0 {
		verdict = "met"
	}
	return strings.Join(f.Pairs, " "), verdict, nil
}

// find returns the last line of the test.
func (s *Shown) find(row string, all []Figures) (found *Figures) {
	for i := range all {
		if all[i].Row == row && all[i].Test == s.Test {
			found = &all[i]
		}
	}
	return found
}

func code(demands []string) string {
	if len(demands) == 0 {
		return ""
	}
	return "`" + strings.Join(demands, " ") + "`"
}

// Insert puts text between the markers of a document.
func Insert(document, text string) (string, error) {
	before, rest, ok := strings.Cut(document, Begin)
	_, after, closed := strings.Cut(rest, End)
	if !ok || !closed {
		return "", errors.New("the document has no markers: " + Begin + " … " + End)
	}
	return before + Begin + "\n\n" + text + "\n" + End + after, nil
}
