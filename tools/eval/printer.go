package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	return op + strconv.FormatFloat(g.bound, 'f', -1, 64)
}

// printer writes results.
type printer struct{ out io.Writer }

// note writes a line that is no result.
func (p printer) note(format string, args ...any) {
	fmt.Fprintf(p.out, "# "+format+"\n", args...)
}

// header says how busy the machine is: times mean little on a busy one.
func (p printer) header() {
	load, _, _ := strings.Cut(readLoad(), " ")
	p.note("%d CPUs, %s %s/%s, load %s", runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH, load)
}

// readLoad is what Linux says; elsewhere it is not known.
func readLoad() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return string(b)
}

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

// quantile is the value below which the share q of all values lies, 0 of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}
