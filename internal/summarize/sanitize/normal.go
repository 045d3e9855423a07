package sanitize

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Text is a text as a reader sees it, with its way back to the original: in
// Unicode's form NFKC, so that full width and styled letters are plain ones,
// without invisible characters and terminal sequences.
type Text struct {
	S string // the normalized text

	size int     // bytes of the original
	runs []piece // in order; nil where S is the original
}

// piece is where a part of the normalized text comes from. The bytes of one that
// is whole come from all of its original bytes; those of others one from one.
type piece struct {
	at, from int // offsets in the normalized text and in the original
	to       int // end in the original
	whole    bool
}

const (
	escape         = '\x1b'
	maxEscapeBytes = 32
	// maxChunk bounds what is given to the normalizer at once.
	maxChunk = 4 << 10
)

// Normalize returns a text as a reader sees it. It takes linear time.
func Normalize(s string) Text {
	if asciiRun(s, 0) == len(s) {
		return Text{S: s, size: len(s)}
	}
	n := normalizer{out: make([]byte, 0, len(s)+len(s)/8)}
	for i := 0; i < len(s); {
		if end := asciiRun(s, i); end > i {
			n.copied(s, i, end)
			i = end
			continue
		}
		if s[i] < utf8.RuneSelf && (i+1 == len(s) || s[i+1] < utf8.RuneSelf) { // a control character
			i += max(1, EscapeLen(s[i:]))
			continue
		}
		end := otherRun(s, i)
		n.composed(s, i, end)
		i = end
	}
	return Text{S: string(n.out), size: len(s), runs: n.runs}
}

// Original returns the part of the original that a part of S comes from.
func (t *Text) Original(from, to int) (int, int) {
	if t.runs == nil || from >= to {
		return from, to
	}
	first, last := t.piece(from), t.piece(to-1)
	start, end := first.from, last.to
	if !first.whole {
		start += from - first.at
	}
	if !last.whole {
		end = last.from + to - last.at
	}
	return start, end
}

// originals puts the parts of the original in place of those of S.
func (t *Text) originals(found []span) []span {
	for i, at := range found {
		found[i].from, found[i].to = t.Original(at.from, at.to)
	}
	return found
}

// piece is the one that holds an offset of S.
func (t *Text) piece(at int) piece {
	i, found := slices.BinarySearchFunc(t.runs, at, func(p piece, at int) int { return p.at - at })
	if !found {
		i--
	}
	return t.runs[i]
}

// Invisible reports what a reader does not see, but a model reads: control
// characters other than white space, soft hyphens, zero width characters, marks
// that turn the direction of text, variation selectors, tags, fillers.
func Invisible(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' ' && !unicode.IsSpace(r)
	case r < 0xad:
		return r != '\u0085' && r < 0xa0
	case unicode.Is(unicode.Cf, r):
		return true
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u17b4', r == '\u17b5', r == '\u3164', r == '\uffa0', r == '\u2800':
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0x180b && r <= 0x180f, r >= 0xe0000 && r <= 0xe0fff:
		return true
	default:
		return false
	}
}

// normalizer collects a normalized text.
type normalizer struct {
	out  []byte
	runs []piece
	it   norm.Iter // large, so there is one
}

func (n *normalizer) copied(s string, from, to int) {
	if k := len(n.runs); k > 0 && !n.runs[k-1].whole && n.runs[k-1].to == from {
		n.runs[k-1].to = to
	} else {
		n.runs = append(n.runs, piece{at: len(n.out), from: from, to: to})
	}
	n.out = append(n.out, s[from:to]...)
}

// composed normalizes characters of which some are not ASCII, one by one with the
// marks that belong to each.
func (n *normalizer) composed(s string, from, to int) {
	it := &n.it
	it.InitString(norm.NFKC, s[from:to])
	for at, start := len(n.out), from; !it.Done(); {
		segment := it.Next()
		for i := 0; i < len(segment); {
			r, w := utf8.DecodeRune(segment[i:])
			if !Invisible(r) {
				n.out = append(n.out, segment[i:i+w]...)
			}
			i += w
		}
		end := from + it.Pos()
		if end == start { // one character that becomes several
			continue
		}
		if len(n.out) > at {
			n.runs = append(n.runs, piece{at: at, from: start, to: end, whole: true})
		}
		at, start = len(n.out), end
	}
}

// asciiRun is the end of the visible ASCII characters from i on, without a last
// one that a following mark may change.
func asciiRun(s string, i int) int {
	from := i
	for i < len(s) && visible[s[i]] {
		i++
	}
	if i > from && i < len(s) && s[i] >= utf8.RuneSelf {
		i--
	}
	return i
}

// visible are ASCII characters that stay as they are.
var visible = func() (is [256]bool) {
	for c := range 0x7f {
		is[c] = c >= ' ' || c >= '\t' && c <= '\r'
	}
	return is
}()

// otherRun is the end of the characters from i on that belong together, or that
// are not ASCII.
func otherRun(s string, i int) int {
	end := i + 1
	for end < len(s) && (s[end] >= utf8.RuneSelf || end+1 < len(s) && s[end+1] >= utf8.RuneSelf && visible[s[end]]) {
		if end-i >= maxChunk && utf8.RuneStart(s[end]) {
			break
		}
		end++
	}
	return end
}

// EscapeLen is the length of the terminal sequence at the start of s, 0 for none.
func EscapeLen(s string) int {
	if len(s) < 2 || s[0] != escape || s[1] != '[' {
		return 0
	}
	for i := 2; i < min(len(s), maxEscapeBytes); i++ {
		if s[i] >= '@' && s[i] <= '~' {
			return i + 1
		}
	}
	return 0
}
