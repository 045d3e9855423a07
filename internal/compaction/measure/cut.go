package measure

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"compactd/internal/events/codec"
)

// ellipsis ends a cut text, and counts as part of it.
const ellipsis = "..."

// sentenceEnds are the preferred places of a cut: after the first character of each.
var sentenceEnds = []string{"\n", ". ", "! ", "? ", "。", "！", "？"}

// maxCluster bounds the search for the beginning of a grapheme, in bytes. A character of a language has at
// most some forty bytes; a longer one is artificial, and is cut between runes.
const maxCluster = 256

// Prose returns the largest number of UTF-16 code units of prose that cost at most
// budget.
func (r Rate) Prose(budget Tokens) int64 {
	return int64(max(budget, 0)) * r.of / r.times * r.TextUnits
}

// CutUnits returns text if it has at most max UTF-16 code units, else its head followed by "...", at most max
// units together. The head ends after the last sentence or line that ends in its second half, else between
// two visible characters: never inside a rune, a letter with its accents or an emoji. Below three units only
// dots are left. The second result reports whether it was cut.
func CutUnits(text string, max int64) (string, bool) {
	if int64(len(text)) <= max || int64(codec.Units(text)) <= max {
		return text, false
	}
	room := max - int64(len(ellipsis))
	switch {
	case max <= 0:
		return "", true
	case room <= 0:
		return ellipsis[:max], true
	}
	head := text[:headEnd(text, room)]
	head = head[:graphemeStart(text, len(head))]
	head = head[:graphemeStart(head, sentenceEnd(head))]
	return head + ellipsis, true
}

// headEnd returns the length in bytes of the longest head of text with at most n UTF-16 units. The text must
// be longer.
func headEnd(text string, n int64) int {
	for i, c := range text {
		if n -= int64(utf16.RuneLen(c)); n < 0 {
			return i
		}
	}
	return len(text)
}

// graphemeStart returns the beginning of the grapheme around position i, the start of a rune; i itself at a
// boundary.
func graphemeStart(text string, i int) int {
	at := boundaryBefore(text, i)
	for state := -1; at < i; {
		var cluster string
		cluster, _, _, state = uniseg.FirstGraphemeClusterInString(text[at:], state)
		if at+len(cluster) > i {
			return at
		}
		at += len(cluster)
	}
	return i
}

// boundaryBefore returns a boundary between two graphemes before position i: a plain one, or else the start
// of the rune that is maxCluster back.
func boundaryBefore(text string, i int) int {
	least := max(0, i-maxCluster)
	for at := i; at > least; at-- {
		if plainBoundary(text, at) {
			return at
		}
	}
	for least < i && !utf8.RuneStart(text[least]) {
		least++
	}
	return least
}

// plainBoundary reports whether position i is between two ASCII characters, which is always a boundary,
// except inside CR LF.
func plainBoundary(text string, i int) bool {
	return i < len(text) && text[i-1] < utf8.RuneSelf && text[i] < utf8.RuneSelf && text[i-1] != '\r'
}

// sentenceEnd returns the end of the last sentence or line of head if that is in its second half, else the
// length of head.
func sentenceEnd(head string) int {
	half := len(head) / 2
	for half < len(head) && !utf8.RuneStart(head[half]) {
		half++
	}
	best := -1
	for _, s := range sentenceEnds {
		if i := strings.LastIndex(head[half:], s); i >= 0 {
			_, width := utf8.DecodeRuneInString(s)
			best = max(best, half+i+width)
		}
	}
	if best < 0 {
		return len(head)
	}
	return best
}
