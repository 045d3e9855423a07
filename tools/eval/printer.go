package main

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"compactd/tools/harness"
)

// goal is what a value should be; its zero value is none.
type goal struct {
	least bool // the value should be at least bound, else at most
	bound float64
	set   bool
}

func atLeast(bound float64) goal { return goal{least: true, bound: bound, set: true} }
func atMost(bound float64) goal  { return goal{bound: bound, set: true} }

func (g goal) met(v float64) bool {
	if g.least {
		return v >= g.bound
	}
	return v <= g.bound
}

func (g goal) String() string {
	op := "<="
	if g.least {
		op = ">="
	}
	return op + strconv.FormatFloat(math.Round(g.bound*1000)/1000, 'f', -1, 64)
}

// printer writes results.
type printer struct{ out io.Writer }

// note writes a line that is no result.
func (p printer) note(format string, args ...any) {
	fmt.Fprintf(p.out, "# "+format+"\n", args...)
}

// header describes the machine: times mean little on a busy one.
func (p printer) header() { p.note("%s", harness.Machine()) }

// line writes one result: its value, the goal and whether it is met, and what the
// value is made of.
func (p printer) line(name string, value float64, g goal, detail string) {
	fmt.Fprintf(p.out, "eval %s %s", name, number(value))
	if g.set {
		verdict := "missed"
		if g.met(value) {
			verdict = "met"
		}
		fmt.Fprintf(p.out, " %s %s", g, verdict)
	}
	if detail != "" {
		fmt.Fprintf(p.out, " (%s)", detail)
	}
	fmt.Fprintln(p.out)
}

// number has three decimals at most: no share below its goal may round up to it.
func number(v float64) string {
	cut := float64(int64(v*1000)) / 1000
	return strconv.FormatFloat(cut, 'f', -1, 64)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}
