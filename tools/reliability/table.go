package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table writes the promises with the figures that were printed, as a list in
// Markdown: an item for each promise, and one below it for each test. A test without
// figures is shown as missing; missed counts those, and those whose figures are not
// what is demanded.
func Table(promises []Promise, all []Figures) (table string, missed int, err error) {
	var b strings.Builder
	for _, p := range promises {
		b.WriteString(wrap("- **"+p.Row+"**: "+p.Text, "  "))
		for _, s := range p.Shown {
			figures, verdict, err := s.verdict(p.Row, all)
			if err != nil {
				return "", 0, err
			}
			if verdict != "met" && verdict != "" {
				missed++
			}
			notes := []string{s.Tier}
			for _, part := range []string{verdict, code(s.Demands)} {
				if part != "" {
					notes = append(notes, part)
				}
			}
			item := "- `" + s.Test + "` (" + strings.Join(notes, ", ") + ")"
			if figures != "" {
				item += ": " + figures
			}
			b.WriteString(wrap("  "+item, "    "))
		}
	}
	return b.String(), missed, nil
}

// columns is the longest line of the list.
const columns = 118

// wrap breaks a paragraph into lines of at most columns characters, where its words
// allow it. All but the first begin with indent.
func wrap(paragraph, indent string) string {
	var b strings.Builder
	b.WriteString(paragraph[:len(paragraph)-len(strings.TrimLeft(paragraph, " "))])
	used := b.Len()
	for i, word := range strings.Fields(paragraph) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > columns:
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String() + "\n"
}

// verdict finds the figures of a test, and whether they are what is demanded.
func (s *Shown) verdict(row string, all []Figures) (figures, verdict string, err error) {
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
	return "demanded `" + strings.Join(demands, "` `") + "`"
}
