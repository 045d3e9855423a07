package claim

import (
	"slices"
	"strings"
	"unicode"

	"compactd/internal/summarize/snippet"
)

// Code has users, clients and owners, and its parts accept, allow and confirm. A sentence about them
// claims nothing.

// withoutCode is a line with its identifiers blanked, of the same length.
func withoutCode(line string) string {
	var out []byte
	from := 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && line[i] != ' ' {
			continue
		}
		if word := line[from:i]; strings.ContainsAny(word, "(_.") || strings.IndexFunc(word, unicode.IsUpper) > 0 {
			for _, at := range identifiers().FindAllStringIndex(word, -1) {
				if out == nil {
					out = []byte(line)
				}
				copy(out[from+at[0]:], strings.Repeat("x", at[1]-at[0]))
			}
		}
		from = i + 1
	}
	if out == nil {
		return line
	}
	return string(out)
}

// ofProgram reports a consent that a part of a program gives or has: "the server accepts", "approved by the
// scheduler", "approved orders are moved".
func ofProgram(lower string, from, to int) bool {
	before := clause(lower[:from])
	by := byProgram().FindString(lower[to:min(len(lower), to+nearConsent)])
	return programSubject().MatchString(before) || by != "" && !snippet.Matches(by, actors) || strings.TrimSpace(before) == "" && ready().MatchString(lower[from:])
}

// ofCode reports that a word for a person is one of code, by the next words.
func ofCode(lower string, from, to int) bool {
	end := wordEnd(lower, to)
	name, behind := lower[from:end], lower[end:]
	if all := strings.Fields(clause(lower[:from])); slices.ContainsFunc(all[max(0, len(all)-2):], func(w string) bool { return sources[w] }) {
		return false
	}
	next := behind[:min(len(behind), nearSpeech)]
	if begins(next, wills) || !client().MatchString(name) && begins(next, consents) {
		return false
	}
	return parts().MatchString(behind) || several().MatchString(name) && (place().MatchString(behind) || present().MatchString(behind) && !personal().MatchString(behind))
}

// begins reports that one of words is the next word of a text.
func begins(s string, words *snippet.Phrases) bool {
	from, _ := snippet.Find(s, words)
	return from >= 0 && from < 3
}
