package compaction

import (
	"unicode/utf8"

	"compactd/internal/events"
)

// Counter counts the tokens of a text exactly. It must be pure: the same text has
// the same count on every machine, for as long as its name is the same.
type Counter interface {
	// Name is what a [Config] is hashed with, such as o200k.
	Name() string
	// Count returns the tokens of a text.
	Count(text string) int64
}

// class is what a byte is to a tokenizer. Which bytes follow each other tells
// prose, code, JSON, logs, CJK and base64 apart: words are long runs of letters,
// code changes between letters and signs, logs are digits, base64 changes with
// every second byte.
type class = uint8

const (
	newlines class = iota // also what stands before a text
	lowers
	uppers
	digits
	spaces
	tabs
	signs     // what is none of the next two
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

// weights says how many thousandths of a token a byte adds, by the class of the
// byte before it (row) and its own (column). They are a least-squares fit to what
// o200k_base makes of source code, documents, logs, data and 22 languages; see
// docs/estimation.md. No usage of any provider is in them.
var weights = [classes][classes]uint16{
	newlines:  {97, 1256, 1046, 1089, 1149, 655, 19, 1245, 495, 1000, 100, 392, 1400, 950, 1644, 2500},
	lowers:    {1343, 64, 391, 894, 248, 1400, 642, 207, 171, 1000, 100, 944, 953, 1102, 0, 2500},
	uppers:    {1400, 747, 298, 1400, 0, 361, 1400, 0, 410, 1000, 100, 1336, 522, 58, 524, 2500},
	digits:    {1400, 1400, 1400, 89, 1393, 274, 661, 1005, 916, 1000, 100, 438, 1126, 920, 1800, 2500},
	spaces:    {916, 496, 0, 1400, 40, 620, 392, 858, 501, 1143, 100, 0, 256, 461, 167, 3000},
	tabs:      {375, 732, 682, 895, 307, 249, 1078, 1265, 1400, 1000, 100, 650, 480, 936, 994, 2500},
	signs:     {0, 830, 1387, 1400, 591, 1400, 168, 392, 1325, 1000, 100, 777, 1054, 1299, 1411, 2500},
	rulers:    {73, 846, 331, 780, 128, 340, 206, 135, 415, 1023, 100, 948, 1400, 1400, 1599, 2500},
	brackets:  {0, 1400, 881, 1156, 373, 315, 225, 983, 73, 1000, 100, 903, 1400, 892, 1800, 2503},
	controls:  {300, 900, 900, 900, 243, 300, 600, 600, 600, 1000, 100, 612, 400, 800, 1035, 2500},
	trails:    {1400, 0, 901, 927, 165, 245, 1271, 6, 1400, 1023, 0, 1084, 0, 557, 369, 2484},
	latins:    {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 493, 600, 400, 800, 1000, 2500},
	alphabets: {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 250, 600, 400, 800, 1000, 2500},
	ideograms: {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 168, 600, 400, 800, 1000, 2500},
	symbols:   {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 0, 600, 400, 800, 1000, 2500},
	pictures:  {300, 900, 900, 900, 100, 300, 600, 600, 600, 1000, 600, 600, 400, 800, 1000, 2500},
}

// densest is the most tokens that a UTF-16 unit of valid text weighs.
const densest = 2

// floorBytes is how many bytes a token has at most, whatever anybody says.
const floorBytes = 8

// weigh estimates the tokens of a text, before a provider's multiplier: at least
// one for each 8 bytes. It reads each byte once.
func weigh(s string) int64 {
	var sum uint64
	last := newlines
	for i := range len(s) {
		c := classOf[s[i]]
		sum += uint64(weights[last%classes][c%classes])
		last = c
	}
	return rounded(sum, len(s))
}

// weighJSON estimates JSON as a model writes and reads it: what stands escaped in
// a string counts as what it stands for.
func weighJSON(s string) int64 {
	var sum uint64
	last := newlines
	for i := 0; i < len(s); i++ {
		c := classOf[s[i]]
		if s[i] == '\\' && i+1 < len(s) {
			i++
			c = escaped(s[i])
		}
		sum += uint64(weights[last%classes][c%classes])
		last = c
	}
	return rounded(sum, len(s))
}

// escaped is the class of what a backslash and b stand for in JSON. The four
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

func rounded(sum uint64, bytes int) int64 {
	return max(ceilDiv(int64(sum), 1000), ceilDiv(int64(bytes), floorBytes))
}

// size is how large a text is, in all ways that a profile may ask for.
type size struct {
	Units int64 `json:"units"` // UTF-16 code units
	Base  int64 `json:"base"`  // tokens before a provider's multiplier, estimated by classes or counted
	Bytes int64 `json:"bytes"`
}

// meter measures texts. Without a counter it estimates.
type meter struct{ counter Counter }

func (m meter) text(s string) size { return m.size(s, weigh) }

func (m meter) json(s string) size { return m.size(s, weighJSON) }

func (m meter) size(s string, estimate func(string) int64) size {
	out := size{Units: int64(units(s)), Bytes: int64(len(s))}
	if m.counter != nil {
		out.Base = m.counter.Count(s)
	} else {
		out.Base = estimate(s)
	}
	return out
}

// units is the size of a text in UTF-16 code units. Most texts are ASCII, which
// is told eight bytes at a time.
func units(s string) uint32 {
	n := ascii(s)
	return uint32(n + events.Units(s[n:]))
}

// ascii returns the length of the ASCII that s begins with, in steps of 8 bytes.
func ascii(s string) int {
	const high = 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if w&high != 0 {
			break
		}
	}
	return i
}
