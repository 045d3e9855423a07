package snippet

import (
	"iter"
	"slices"
	"strings"
)

// notIssues begin words that look like an issue and name no issue.
var notIssues = []string{"AES", "ES", "GPT", "HTTP", "ISO", "MD", "RFC", "RS", "SHA", "TLS", "US", "UTF"}

// Identifiers calls found for the UUIDs, hashes of commits and names of issues
// (ABC-123, #123) in a text.
func Identifiers(s string, found func(string)) {
	for from, to := range Words(s) {
		word := strings.Trim(s[from:to], "-")
		dotted := to+1 < len(s) && s[to] == '.' && identByte(s[to+1]) // a file's name
		if len(word) <= IdentUnits && !dotted && (isNumber(word) || isHash(word) || isUUID(word) || isIssue(word)) {
			found(word)
		}
	}
}

// Words lists where the words of a text stand that may be identifiers.
func Words(s string) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for i := 0; i < len(s); i++ {
			from := i
			for i < len(s) && identByte(s[i]) {
				i++
			}
			if from < i && !yield(from, i) {
				return
			}
		}
	}
}

// identByte reports whether c may be part of an identifier.
func identByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '#'
}

// Digits returns how many decimal digits s has.
func Digits(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}

// isNumber matches #12 to #12345; longer and uniform ones are colours.
func isNumber(w string) bool {
	if len(w) < 3 || len(w) > 6 || w[0] != '#' || Digits(w) != len(w)-1 {
		return false
	}
	return strings.Trim(w[1:], w[1:2]) != ""
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func isHash(w string) bool {
	n := Digits(w)
	return len(w) >= 7 && len(w) <= 40 && n >= 2 && n < len(w) && isHex(w)
}

func isUUID(w string) bool {
	return len(w) == 36 && w[8] == '-' && w[13] == '-' && w[18] == '-' && w[23] == '-' &&
		isHex(strings.ToLower(strings.ReplaceAll(w, "-", "")))
}

func isIssue(w string) bool {
	key, number, ok := strings.Cut(w, "-")
	if !ok || len(key) < 2 || len(key) > 10 || number == "" || len(number) > 6 || Digits(number) != len(number) {
		return false
	}
	return key[0] >= 'A' && key[0] <= 'Z' && strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" && !slices.Contains(notIssues, key)
}

// IsValueID reports whether the value of an argument such as user_id is short
// enough, and made like an identifier.
func IsValueID(s string) bool {
	if len(s) < 2 || len(s) > IdentUnits {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r > '~' || r <= ' ' || r == '"' || r == '<' || r == '{'
	})
}
