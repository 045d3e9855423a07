package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
)

// Problem is one defect of an operator's input.
type Problem struct {
	Where string // such as policy.yaml:3 or --set; "" when no one place is to blame
	Text  string // the defect, and what to write instead

	line int
}

// Error lists every problem, those of a file by line.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	var b strings.Builder
	if n := len(e.Problems); n > 1 {
		fmt.Fprintf(&b, "%d problems with the policy:", n)
	} else {
		b.WriteString("a problem with the policy:")
	}
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		if p.Where != "" {
			b.WriteString(p.Where + ": ")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// problems collects them.
type problems []Problem

func (p *problems) add(at place, format string, args ...any) {
	*p = append(*p, Problem{at.String(), fmt.Sprintf(format, args...), at.line})
}

// err is nil without problems.
func (p *problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	slices.SortStableFunc(*p, func(a, b Problem) int { return cmp.Compare(a.line, b.line) })
	return &Error{*p}
}

// place is the place of a value.
type place struct {
	source string // a file, a flag, or a preset
	line   int    // 0 when the source has no lines
	preset bool   // no user wrote it
}

func (p place) String() string {
	if p.line == 0 {
		return p.source
	}
	return fmt.Sprintf("%s:%d", p.source, p.line)
}

// nearest returns the name that was probably meant, or "".
func nearest(name string, names []string) string {
	best, least := "", len(name)/3+1 // more is another word
	for _, n := range names {
		if d := measure.Distance(name, n); d <= least {
			best, least = n, d-1
		}
	}
	return best
}
