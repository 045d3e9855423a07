package idents

import (
	"hash/fnv"
	"iter"
)

// Bounds of an identifier, in bytes.
const (
	least = 6
	most  = 200
)

// Key stands for an identifier where only equality counts. Two that share one are taken for the same.
type Key = uint32

// KeyOf is the key of an identifier.
func KeyOf(ident string) Key {
	h := fnv.New32a()
	_, _ = h.Write([]byte(ident))
	return h.Sum32()
}

// In walks over the identifiers of a text, or of JSON as it came, in their order.
func In(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := 0; at < len(text); {
			if text[at] == '\\' { // an escape of JSON, such as \n
				at += 2
				continue
			}
			from := at
			for at < len(text) && inWord[text[at]] {
				at++
			}
			if w := trim(text[from:at]); at-from >= least && isIdent(w) && !yield(w) {
				return
			}
			if at == from {
				at++
			}
		}
	}
}

var inWord = func() (t [256]bool) {
	for c := range t {
		b := byte(c)
		t[c] = isLetter(b) || isDigit(b) || b == '_' || b == '.' || b == '/' || b == '@' || b == ':' || b == '-'
	}
	return t
}()

func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isLower(c) || isUpper(c) }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// trim takes off what a sentence puts around an identifier.
func trim(w string) string {
	outside := func(c byte) bool { return c == '.' || c == ':' || c == '-' || c == '/' }
	for len(w) > 0 && outside(w[0]) {
		w = w[1:]
	}
	for len(w) > 0 && outside(w[len(w)-1]) {
		w = w[:len(w)-1]
	}
	return w
}

// isIdent reports whether a word has what makes an identifier of it: a slash, a dot, a digit, an
// underscore, or a capital behind a small letter.
func isIdent(w string) bool {
	if len(w) < least || len(w) > most {
		return false
	}
	for i := range len(w) {
		c := w[i]
		if c == '/' || c == '.' || c == '_' || isDigit(c) || isUpper(c) && i > 0 && isLower(w[i-1]) {
			return true
		}
	}
	return false
}
