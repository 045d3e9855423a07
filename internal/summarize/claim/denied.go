package claim

import (
	"strings"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// clauseBytes is the largest distance of a negation before its word.
const clauseBytes = 60

// clause is the last clause of a text.
func clause(before string) string {
	before = before[max(0, len(before)-clauseBytes):]
	return before[strings.LastIndexAny(before, ".;:!?,")+1:]
}

// denied returns the words that deny a consent at [from, to): a negation before it, or its absence after it.
// They are empty without a denial: "not only approved", "did not need approval".
func denied(lower string, from, to int) (int, int) {
	before, behind := clause(lower[:from]), lower[to:min(len(lower), to+nearConsent)]
	if m := negated().FindStringSubmatchIndex(before); m != nil {
		if partial().MatchString(before[m[0]:]) || partial().MatchString(behind) || reversing[strings.TrimSpace(before[max(0, m[2]):max(0, m[3])])] {
			return 0, 0
		}
		return from - len(before) + m[0], from
	}
	if m := withheld().FindStringSubmatchIndex(behind); m != nil {
		return to + m[2], to + m[3]
	}
	return 0, 0
}

// partial is a word in a clause which denies that a consent is complete.
var partial = lazyregexp.New(`^[^.;:!?,]*(?:^|\s)(?:only|just|merely|solely|simply)(?:$|[^\p{L}])`)

// withheld ends the clause of a consent that was not given.
var withheld = lazyregexp.New(`^[^.;:!?,]*?\s((?:was|were|is|are|has|have|had)(?: still)? (?:never|not)(?: yet)?(?: been)? (?:given|granted|obtained|received|there)|(?:was|were|is|are|remains)(?: still)? (?:missing|outstanding|denied|refused|withheld))\s*(?:$|[.;:!?,])`)

// inquires reports a verb of a user who has a question, or may want something.
func inquires(before, from string) bool {
	return possible().MatchString(before[max(0, len(before)-20):]) || question().MatchString(from[:min(len(from), 60)])
}

var (
	// possible ends in a wish that is not certain.
	possible = lazyregexp.New(`(?:^|\s)(?:may|might)\s(?:also\s|then\s)?$`)
	// awaited ends before an event in the future.
	awaited = lazyregexp.New(`(?:^|[^\p{L}])(?:wait(?:ing|s|ed)? for|ask(?:ed|s|ing)? (?:the [\p{L}']+ )?(?:for|whether|if|to)|if|unless|until|whether|needs?|requires?|pending|awaiting|await|seek(?:ing|s)?)\s(?:[\p{L}']+\s){0,3}$`)
	// negated ends in a negation of the next word, with at most one word in between.
	negated = lazyregexp.New(`(?:^|[^\p{L}])(?:not|no|never|without|cannot|can't|don't|doesn't|didn't|hasn't|haven't|hadn't|isn't|wasn't|weren't|aren't|won't|wouldn't|lacks?|lacking|refused to|declined to|` +
		`nicht|kein|keine|keinen|nie|niemals|ohne|pas|jamais|sans|sin|nunca|não|sem|non|mai|senza|geen|niet|nooit|zonder|inte|ingen|aldrig|ikke|utan|uden|uten|bez|не|без|ні|ne|nem|aucune?|ninguna?|nenhuma?|nessuna?|żadn[ea])\s([\p{L}']+\s)?$|(?:不|没|沒|未|没有|未经|未經|无|無|沒有|않|안|미)$`)
)

// questionBytes is the largest distance of words of needlessness after a question.
const questionBytes = 80

// needless reports a question, at [from, to), that is no longer necessary.
func needless(lower string, from, to int) bool {
	behind := lower[to:min(len(lower), to+questionBytes)]
	if i := strings.IndexAny(behind, ".;:!?"); i >= 0 {
		behind = behind[:i]
	}
	if snippet.Matches(behind, optional) {
		return true
	}
	unasked := negated().MatchString(clause(lower[:from]))
	for i := range snippet.Each(behind, necessary) {
		if unasked || negated().MatchString(clause(lower[:to+i])) {
			return true
		}
	}
	return false
}
