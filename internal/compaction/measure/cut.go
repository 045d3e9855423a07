package measure

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"compactd/internal/events"
)

// ellipsis ends a text that was cut. It counts.
const ellipsis = "..."

// sentenceEnds are where a text is cut rather than inside a sentence: behind the
// first character of each.
var sentenceEnds = []string{"\n", ". ", "! ", "? ", "。", "！", "？"}

// maxCluster bounds, in bytes, how far back the beginning of a grapheme is looked for.
// A character of a language has at most some forty bytes; a longer one was made to be,
// and is cut between runes.
const maxCluster = 256

// Cut returns text if it costs at most budget tokens of prose, else its head with
// "..." behind, which costs at most budget; see [CutUnits]. The second result
// reports whether it was cut.
func (r Rate) Cut(text string, budget Tokens) (string, bool) {
	return CutUnits(text, r.prose(budget))
}

// prose is the largest number of UTF-16 code units of prose that cost at most
// budget.
func (r Rate) prose(budget Tokens) int64 {
	return int64(max(budget, 0)) * r.of / r.times * r.TextUnits
}

// CutUnits returns text if it has at most max UTF-16 code units, else its head
// with "..." behind, at most max units together. The head ends after the last
// sentence or line that ends in its second half, else between two characters as
// people see them: never inside a rune, a letter with its accents or an emoji. Of
// less than three units only dots are left, of none nothing. The second result
// reports whether it was cut.
func CutUnits(text string, max int64) (string, bool) {
	if int64(len(text)) <= max || int64(events.Units(text)) <= max {
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

// headEnd returns the length in bytes of the longest head of text with at most n
// UTF-16 units. The text is longer than that.
func headEnd(text string, n int64) int {
	for i, c := range text {
		if n -= int64(utf16.RuneLen(c)); n < 0 {
			return i
		}
	}
	return len(text)
}

// graphemeStart returns the beginning of the grapheme that position i, the start
// of a rune, is inside of; i itself at a boundary.
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

// boundaryBefore returns a boundary between two graphemes before position i: one that
// is plain, or else the start of the rune that is maxCluster back.
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

// plainBoundary reports whether position i is between two characters of ASCII, which
// is a boundary whatever comes before them, but for a CR and its LF.
func plainBoundary(text string, i int) bool {
	return i < len(text) && text[i-1] < utf8.RuneSelf && text[i] < utf8.RuneSelf && text[i-1] != '\r'
}

// sentenceEnd returns where the last sentence or line of head ends, if that is in
// its second half, else the length of head.
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
