package sanitize

import (
	"math"
	"slices"
)

// wordFinder is an automaton of Aho and Corasick that finds words in a text. Its
// transitions are complete, one look-up for each byte. It is small: bytes that are in no
// word share a column, and states are two bytes. See docs/adr/0039.
type wordFinder struct {
	columns [256]uint16
	width   int      // the number of columns
	next    []uint16 // by state and column
	ends    []wordEnd
}

// wordEnd is what is found in a state.
type wordEnd struct {
	length uint16 // of the word, 0 for none
	word   uint16
	suffix uint16 // the state of the longest shorter word that ends here too, 0 for none
}

// newWordFinder finds words that are not empty. Of equal words it reports the last.
func newWordFinder(words []string) *wordFinder {
	f := &wordFinder{width: 1}
	for _, w := range words {
		for i := range len(w) {
			if c := &f.columns[w[i]]; *c == 0 {
				*c = uint16(f.width)
				f.width++
			}
		}
	}
	f.state()
	for n, w := range words {
		s := 0
		for i := range len(w) {
			at := s*f.width + int(f.columns[w[i]])
			if f.next[at] == 0 {
				f.next[at] = uint16(f.state())
			}
			s = int(f.next[at])
		}
		f.ends[s].length, f.ends[s].word = uint16(len(w)), uint16(n)
	}
	f.complete()
	f.next, f.ends = slices.Clip(slices.Clone(f.next)), slices.Clip(slices.Clone(f.ends)) // kept for ever
	return f
}

// state adds a state without transitions.
func (f *wordFinder) state() int {
	n := len(f.ends)
	if n > math.MaxUint16 {
		panic("rules of redaction: too many words") // they are part of the program
	}
	f.next = append(f.next, make([]uint16, f.width)...)
	f.ends = append(f.ends, wordEnd{})
	return n
}

// complete gives each state the transitions of its longest suffix that is a state, by
// their length: a transition to 0 is one that is not there.
func (f *wordFinder) complete() {
	suffix := make([]uint16, len(f.ends))
	for queue := []uint16{0}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		from := suffix[s]
		f.ends[s].suffix = from
		if f.ends[from].length == 0 {
			f.ends[s].suffix = f.ends[from].suffix
		}
		for c := 1; c < f.width; c++ {
			at, other := int(s)*f.width+c, f.next[int(from)*f.width+c]
			switch to := f.next[at]; {
			case to == 0:
				f.next[at] = other
			case s == 0:
				queue = append(queue, to)
			default:
				suffix[to] = other
				queue = append(queue, to)
			}
		}
	}
}

// walk calls found for every word in a text, by their ends and then from the longest: with
// the position of its last byte, its length and its number. It ends when found returns
// false.
func (f *wordFinder) walk(text []byte, found func(last, length, word int) bool) {
	s := uint16(0)
	for i, b := range text {
		s = f.next[int(s)*f.width+int(f.columns[b])]
		for at := s; at != 0; at = f.ends[at].suffix {
			if e := f.ends[at]; e.length > 0 && !found(i, int(e.length), int(e.word)) {
				return
			}
		}
	}
}

// matches reports whether a text has one of the words.
func (f *wordFinder) matches(text []byte) (found bool) {
	f.walk(text, func(int, int, int) bool { found = true; return false })
	return found
}
