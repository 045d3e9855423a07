package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"compactd/internal/testkit/figures"
)

// Figures are those of one line.
type Figures struct {
	Row  string // P1
	Test string // TestFaultKills, or the name of a program
	// Pairs are key=value in the order they were printed in.
	Pairs []string
}

// Read takes the lines of figures out of what tests printed; other lines are passed
// over. Of several lines of one row and test the last counts.
func Read(from io.Reader) ([]Figures, error) {
	var out []Figures
	s := bufio.NewScanner(from)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		rest, ok := strings.CutPrefix(s.Text(), figures.Prefix)
		words := strings.Fields(rest)
		if !ok || len(words) < 2 || !strings.HasPrefix(words[1], "test=") {
			continue
		}
		out = append(out, Figures{words[0], strings.TrimPrefix(words[1], "test="), words[2:]})
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read figures: %w", err)
	}
	return out, nil
}

// value is what a key has in the line.
func (f *Figures) value(key string) (string, bool) {
	for _, p := range f.Pairs {
		if v, ok := strings.CutPrefix(p, key+"="); ok {
			return v, true
		}
	}
	return "", false
}

// operators are tried in this order: the longer ones first.
var operators = []string{">=", "<=", "=", ">"}

// Meets reports whether the line has what is demanded, as "kills>=200". Any other value
// is compared as text, and only with =.
func (f *Figures) Meets(demand string) (bool, error) {
	for _, op := range operators {
		key, want, ok := strings.Cut(demand, op)
		if !ok {
			continue
		}
		have, there := f.value(key)
		if op == "=" {
			return there && have == want, nil
		}
		w, err := strconv.ParseFloat(want, 64)
		if err != nil {
			return false, fmt.Errorf("demand %q: %w", demand, err)
		}
		h, err := strconv.ParseFloat(have, 64)
		return there && err == nil && compare(h, op, w), nil
	}
	return false, fmt.Errorf("demand %q has none of %q", demand, operators)
}

func compare(a float64, op string, b float64) bool {
	switch op {
	case ">=":
		return a >= b
	case "<=":
		return a <= b
	default:
		return a > b
	}
}
