package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// meaning is the form in which one sentence supports another: their content, each word with its side of the
// negations.
type meaning struct {
	sided    []string // sorted, each ends in its side
	negators int
}

// Sides of a word: in a clause without a negation, before the first negation, or after the first, the second
// and so on.
const (
	plainSide  = 'a'
	beforeSide = 'b'
	behindSide = 'c'
	lastSide   = 'f'
)

// negationBytes exceeds the length of any negation.
const negationBytes = 24

// turning ends the reach of a negation, and begins a clause of its own.
var turning = lazyregexp.New(`[;:.!?。；：！？]\s|\s[-–—]+\s|\s(?:but|instead|sondern|aber|mais|pero|sino|mas|ma|maar|ale|но|а|ama)\s`)

// meaningOf reads a sentence.
func meaningOf(s string) (m meaning) {
	lower := snippet.Lowered(s)
	from := 0
	for _, t := range turning().FindAllStringIndex(lower, -1) {
		if isNegation(lower[t[1]:]) {
			break
		}
		m.clause(lower[from:t[0]])
		from = t[1]
	}
	m.clause(lower[from:])
	slices.Sort(m.sided)
	m.sided = slices.Compact(m.sided)
	return m
}

// isNegation reports an end of a sentence that negates the words before it: "Travel: no".
func isNegation(end string) bool {
	end = strings.Trim(snippet.Head(end, negationBytes), " *_.!")
	from, to := snippet.Find(end, negations)
	return from == 0 && to == len(end)
}

// clause adds a clause; within it a comma begins the part that a negation covers.
func (m *meaning) clause(lower string) {
	side := byte(plainSide)
	for {
		from, to := snippet.Find(lower, negations)
		if from < 0 {
			m.add(lower, side)
			return
		}
		before := lower[:from]
		if side != plainSide && lower[from:to] == "not even" { // it repeats the one before
			m.add(before, side)
			lower = lower[to:]
			continue
		}
		if side == plainSide {
			if i := strings.LastIndexByte(before, ','); i >= 0 {
				m.add(before[:i], plainSide)
				before = before[i:]
			}
			m.add(before, beforeSide)
			side = behindSide
		} else {
			m.add(before, side)
			side = min(side+1, lastSide)
		}
		m.negators++
		lower = lower[to:]
	}
}

func (m *meaning) add(s string, side byte) {
	for _, w := range content(s) {
		m.sided = append(m.sided, w+string(side))
	}
}

// isUnspaced reports a sentence of which most content is pairs of characters. Some of the pairs are particles
// and endings.
func (m *meaning) isUnspaced() bool {
	n := 0
	for _, w := range m.sided {
		if r, _ := utf8.DecodeRuneInString(w); snippet.Unspaced(r) {
			n++
		}
	}
	return 2*n > len(m.sided)
}

func (m *meaning) with(o meaning) meaning {
	all := slices.Concat(m.sided, o.sided)
	slices.Sort(all)
	return meaning{slices.Compact(all), m.negators + o.negators}
}

// borne returns the percentage of a meaning that another one has. A word before a negation matches one after
// it ("spaces must not be used"), unless another word changes sides too.
func (m *meaning) borne(by *meaning) int {
	known, turned := 0, map[byte]bool{}
	for _, w := range m.sided {
		if _, ok := slices.BinarySearch(by.sided, w); ok {
			known++
			continue
		}
		side := w[len(w)-1]
		if m.negators == by.negators && (side == beforeSide || side == behindSide) {
			if _, ok := slices.BinarySearch(by.sided, w[:len(w)-1]+string(beforeSide+behindSide-side)); ok {
				known++
				turned[side] = true
			}
		}
	}
	if len(turned) > 1 {
		return 0
	}
	return known * 100 / max(1, len(m.sided))
}
