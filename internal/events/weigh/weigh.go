package weigh

import (
	"strings"
	"unicode/utf8"
)

// Size is the size of a text in each unit that a profile may use.
type Size struct {
	Units int64 `json:"units"` // UTF-16 code units
	Base  int64 `json:"base"`  // tokens before a provider's multiplier, estimated by classes or counted
	Bytes int64 `json:"bytes"`
	// Newlines counts the newlines of a text; it is 0 for JSON.
	Newlines int64 `json:"-"`
}

// Counter counts the tokens of a text exactly. It must be pure: the same text has
// the same count on every machine, for as long as its name is the same.
type Counter interface {
	// Name is part of the hash of a config, such as o200k.
	Name() string
	// Count returns the tokens of a text.
	Count(text string) int64
}

// class is the kind of a byte for a tokenizer. The order of classes distinguishes prose, code,
// JSON, logs, CJK and base64: words are long runs of letters, code changes between letters and
// signs, logs are digits, base64 changes with every second byte.
type class = uint8

const (
	newlines class = iota // also the start of a text
	lowers
	uppers
	digits
	spaces
	tabs
	signs     // of ASCII, other than the next two
	rulers    // - = _ * # ~ . come in runs
	brackets  // and quotes
	controls  // of ASCII
	trails    // of a rune beyond ASCII
	latins    // leads a letter with an accent
	alphabets // leads one of Greek, Cyrillic, Hebrew, Arabic
	ideograms // leads Chinese, Japanese, Korean
	symbols   // leads any other rune of three bytes: arrows, boxes, Indic scripts
	pictures  // leads a rune of four bytes: emoji
	classes
)

// classOf is the class of each byte.
var classOf = func() (t [256]class) {
	for i := range t {
		t[i] = classify(byte(i))
	}
	return t
}()

func classify(b byte) class {
	switch {
	case b == '\n' || b == '\r':
		return newlines
	case 'a' <= b && b <= 'z':
		return lowers
	case 'A' <= b && b <= 'Z':
		return uppers
	case '0' <= b && b <= '9':
		return digits
	case b == ' ':
		return spaces
	case b == '\t':
		return tabs
	case b < ' ' || b == 0x7f:
		return controls
	case b >= utf8.RuneSelf:
		return classifyHigh(b)
	}
	switch b {
	case '-', '=', '_', '*', '#', '~', '.':
		return rulers
	case '"', '\'', '`', '(', ')', '[', ']', '{', '}', '<', '>':
		return brackets
	}
	return signs
}

func classifyHigh(b byte) class {
	switch {
	case b < 0xc0:
		return trails
	case b < 0xc8:
		return latins
	case b < 0xe0:
		return alphabets
	case 0xe3 <= b && b <= 0xed:
		return ideograms
	case b < 0xf0:
		return symbols
	default:
		return pictures
	}
}

// weights is how many thousandths of a token a byte adds, by the class of the
// byte before it (row) and its own (column). They are a least-squares fit to what
// o200k_base makes of source code, documents, logs, data and 22 languages; see
// docs/estimation.md. No usage of any provider is in them.
var weights = [classes][classes]uint16{
	newlines:  {213, 1269, 1223, 1016, 1236, 619, 26, 1134, 555, 1021, 100, 0, 1400, 847, 1800, 2500},
	lowers:    {1286, 53, 283, 839, 293, 1153, 638, 124, 79, 1000, 100, 1036, 716, 687, 0, 2500},
	uppers:    {1158, 848, 311, 1400, 0, 341, 1400, 0, 525, 1000, 100, 1147, 389, 0, 226, 2500},
	digits:    {1176, 1400, 1400, 132, 1259, 326, 733, 980, 767, 1000, 100, 635, 1219, 468, 1800, 2500},
	spaces:    {509, 473, 0, 1400, 44, 497, 510, 716, 486, 1136, 100, 0, 484, 458, 326, 3000},
	tabs:      {331, 849, 941, 867, 314, 243, 1368, 704, 1400, 1000, 100, 577, 314, 888, 1013, 2500},
	signs:     {0, 929, 1307, 1400, 618, 1400, 174, 7, 157, 1000, 100, 811, 940, 970, 1800, 2500},
	rulers:    {152, 912, 394, 832, 344, 343, 726, 148, 429, 1025, 100, 877, 1400, 1013, 1162, 2500},
	brackets:  {0, 1400, 434, 937, 571, 336, 323, 698, 237, 1000, 100, 892, 1400, 1369, 1683, 2517},
	controls:  {300, 900, 900, 900, 236, 300, 600, 600, 600, 1000, 100, 612, 421, 800, 1037, 2500},
	trails:    {1400, 0, 1282, 417, 0, 225, 786, 184, 1400, 1025, 0, 1068, 2, 700, 370, 2476},
	latins:    {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 435, 600, 400, 800, 1000, 2500},
	alphabets: {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 241, 600, 400, 800, 1000, 2500},
	ideograms: {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 90, 600, 400, 800, 1000, 2500},
	symbols:   {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 0, 600, 400, 800, 1000, 2500},
	pictures:  {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 600, 600, 400, 800, 1000, 2500},
}

// FloorBytes is how many bytes a token has at most, whatever the usages.
const FloorBytes = 8

// steps is weights in one row, class of the byte before it first, with the UTF-16
// units that the byte adds from bit unitShift on: both sums grow in one addition.
var steps = func() (t [1 << 8]uint64) {
	for last := range classes {
		for c := range classes {
			units := uint64(1)
			switch c {
			case trails:
				units = 0
			case pictures:
				units = 2
			}
			t[last<<4|c] = uint64(weights[last][c]) | units<<unitShift
		}
	}
	return t
}()

// unitShift leaves room for the weight of any event below it.
const unitShift = 40

// Text measures a text. It reads each byte once.
func Text[S string | []byte](s S) Size {
	sum, _ := pass(0, newlines, s)
	out := size(sum, len(s))
	out.Newlines = int64(strings.Count(string(s), "\n"))
	return out
}

// pass goes over a piece of text: it adds to the two sums, and returns the class
// that the next piece comes behind.
func pass[S string | []byte](sum uint64, last class, s S) (uint64, class) {
	for i := range len(s) {
		c := classOf[s[i]]
		sum += steps[last<<4|c]
		last = c
	}
	return sum, last
}

// JSON measures JSON as a model writes and reads it: an escape in a
// string weighs as the character it encodes, and one of a character beyond ASCII is no more than
// that character.
func JSON[S ~string | ~[]byte](s S) Size {
	var sum uint64
	last, spelt := newlines, 0 // bytes of escapes beyond those of their characters
	for i := 0; i < len(s); i++ {
		c := classOf[s[i]]
		if s[i] == '\\' && i+1 < len(s) {
			if r, n := Unescape(s[i:]); r >= utf8.RuneSelf && r != utf8.RuneError {
				char := string(r)
				sum, last = pass(sum, last, char)
				spelt += n - len(char)
				i += n - 1
				continue
			}
			i++
			c = escaped(s[i])
			sum += 1 << unitShift // of the backslash
		}
		sum += steps[last<<4|c]
		last = c
	}
	return size(sum, len(s)-spelt)
}

// size takes the two sums of so many bytes apart.
func size(sum uint64, bytes int) Size {
	weight, floor := int64(sum&(1<<unitShift-1)), int64(bytes+FloorBytes-1)/FloorBytes
	return Size{Units: int64(sum >> unitShift), Base: max((weight+999)/1000, floor), Bytes: int64(bytes)}
}

// escaped is the class of the character that a backslash and b encode in JSON. The four
// digits of a \u count beside it.
func escaped(b byte) class {
	switch b {
	case 'n', 'r':
		return newlines
	case 't':
		return tabs
	case 'b', 'f', 'u':
		return controls
	default:
		return classOf[b]
	}
}
