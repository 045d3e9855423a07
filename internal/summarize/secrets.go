package summarize

import (
	"regexp"
	"strings"
)

// ownRule finds secrets in its first group, near a word.
type ownRule struct {
	words         []string // in small letters
	before, after int      // bytes around the beginning of a word that are looked at
	match         *regexp.Regexp
	keep          func(secret string) bool // what is none
}

// What the rules are made of.
const (
	// base64Lines are lines of a key, or the same with \n written out, with line
	// numbers before them or without.
	base64Lines = `(?:(?:\\[rn]|[^A-Za-z0-9+/=-]|\d{1,6}[:→\t]){0,24}[A-Za-z0-9+/=]{24,})+`
	lineEnds    = `(?:\\[rn]|[^A-Za-z0-9+/=-]|\d{1,6}[:→\t])*`
	assigned    = "(?:\\\\{0,7}[\"'`])?([^\\s\"'`,;(){}\\[\\]<>$&|\\\\]{8,200})"
)

var (
	secretWords = []string{
		"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "api-key", "apikey", "access_key", "access-key",
		"accesskey", "accountkey", "account_key", "auth_key", "authkey", "private_key", "shared_key",
	}
	ownRules = []ownRule{
		{ // scheme://user:password@host
			words: []string{"://"}, after: 512,
			match: regexp.MustCompile("^://[^\\s/:@\"'`<>]{0,128}:([^\\s/\"'`<>]{1,256})@"),
		},
		{
			words: []string{"bearer ", "basic "}, after: 4 << 10,
			match: regexp.MustCompile(`^\w+ {1,4}([A-Za-z0-9._~+/=-]{16,})`),
			keep:  func(s string) bool { return digits(s) == 0 },
		},
		{ // password=…, "api_key": "…"
			words: secretWords, after: 256,
			match: regexp.MustCompile(`(?i)^(?:` + strings.Join(secretWords, "|") + ")(?:[_-]?key)?(?:\\\\{0,7}[\"'`])?\\s{0,3}(?::=|=>|=|:)\\s{0,3}" + assigned),
			keep:  plainWord,
		},
		{ // --token …
			words: []string{"--"}, after: 256,
			match: regexp.MustCompile(`(?i)^--(?:[a-z]+-){0,4}(?:` + strings.Join(secretWords, "|") + `)[= ]` + assigned),
			keep:  plainWord,
		},
		{ // the head of a private key whose end was cut off
			words: []string{"private key"}, after: pieceBytes + overlapBytes,
			match: regexp.MustCompile(`(?i)^private key(?: block)?-----(` + base64Lines + `)`),
		},
		{ // and the tail of one
			words: []string{"-----end"}, before: pieceBytes + overlapBytes, after: 128,
			match: regexp.MustCompile(`(?i)(` + base64Lines + lineEnds + `[A-Za-z0-9+/=]{0,64})` + lineEnds + `-----end[ a-z0-9_-]{0,100}private key`),
		},
	}
)

// ownSecrets are what ownRules find. The expressions run only where a word of
// theirs stands: to search with them would take as long as all of gitleaks.
func ownSecrets(s string) []span {
	var found []span
	lower := lowered(s)
	for _, r := range ownRules {
		for _, w := range r.words {
			for i := 0; ; i += len(w) {
				n := strings.Index(lower[i:], w)
				if n < 0 {
					break
				}
				i += n
				from := max(0, i-r.before)
				m := r.match.FindStringSubmatchIndex(s[from:min(len(s), i+r.after)])
				if m == nil {
					continue
				}
				if at := (span{from + m[2], from + m[3]}); r.keep == nil || !r.keep(s[at.from:at.to]) {
					found = append(found, at)
				}
			}
		}
	}
	return found
}

// lowered is s with its ASCII letters small, of the same length in bytes.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// plainWord reports what is assigned to a password in code and prose, but is
// none: words, numbers, names of members, paths.
func plainWord(s string) bool {
	n := digits(s)
	return n == 0 || n == len(s) || strings.HasPrefix(s, "*") || strings.HasPrefix(s, "://") || isPathLike(s) || wordsOnly(s)
}

var wordNumber = regexp.MustCompile(`^[A-Za-z]*(?:[._-]?[A-Za-z]+)*[._-]?\d{0,4}[.:!?)]*$`)

// wordsOnly reports names such as parse_token2 and cfg.auth.key1 that stand in
// code. What looks like one and ends in digits may be a bad password: names of
// one word with digits are not taken for code.
func wordsOnly(s string) bool {
	return strings.ContainsAny(strings.TrimRight(s, ".:"), "._") && wordNumber.MatchString(s)
}

var secretName = regexp.MustCompile(`(?i)api|secret|passw|token|cred`)

// harmless reports a value that the generic rule takes for a secret, but that is
// a path, or an identifier which nothing calls a secret.
func harmless(match, value string) bool {
	if isPathLike(value) {
		return true
	}
	name, _, _ := strings.Cut(match, value)
	return !secretName.MatchString(name) && (isUUID(value) || isHash(value))
}

var pathSegment = regexp.MustCompile(`^[.@~]{0,2}(?:[A-Za-z]+[_.-])*[A-Za-z]*\d{0,4}(?:\.[A-Za-z]{1,5}\d?)?$`)

// isPathLike knows paths by their segments: words, with a number at the end at
// most. The random text of a key has digits between its letters.
func isPathLike(s string) bool {
	s = strings.TrimRight(s, ".:")
	if !strings.Contains(s, "/") {
		return false
	}
	for seg := range strings.SplitSeq(s, "/") {
		if !pathSegment.MatchString(seg) {
			return false
		}
	}
	return true
}
