package claim

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/snippet"
)

// Kind is what a sentence claims for a user.
type Kind uint8

// The kinds of claims.
const (
	None     Kind = iota
	Approval      // consent, by whomever
	Will          // a wish, decision, statement or act of a user
)

// The most bytes between an actor and the act of a claim.
const (
	nearConsent = 120
	nearWill    = 48
)

// Of returns what a line claims, and the line without the words of the claim.
func Of(line string) (kind Kind, rest string) {
	lower := snippet.Lowered(sanitize.Normalize(snippet.StripInvisible(line)).S)
	f := found{}
	for from, to := range each(lower, approvals) {
		if !refused(lower[:from]) {
			f.add(Approval, from, to)
		}
	}
	for from, to := range each(lower, needless) {
		if snippet.Matches(lower[max(0, from-questionBytes):from], questions) {
			f.add(Approval, from, to)
		}
	}
	for from, to := range each(lower, questions) {
		if unasked.MatchString(lower[max(0, from-questionBytes):from]) && needed.MatchString(lower[to:]) {
			f.add(Approval, from, to)
		}
	}
	for from, to := range each(lower, orders) {
		f.add(Will, from, to)
	}
	f.acts(lower)
	return f.kind, f.without(lower)
}

// each lists where words stand in a text.
func each(lower string, words *snippet.Phrases) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for at := 0; at < len(lower); {
			from, to := snippet.Find(lower[at:], words)
			if from < 0 || !yield(at+from, at+to) {
				return
			}
			at += max(to, from+1)
		}
	}
}

// found is what of a line claims something.
type found struct {
	kind  Kind
	spans [][2]int
}

func (f *found) add(k Kind, from, to int) {
	f.spans = append(f.spans, [2]int{from, to})
	if f.kind == None || k == Approval {
		f.kind = k
	}
}

// acts finds who did what a user does.
func (f *found) acts(lower string) {
	for from, to := range each(lower, actors) {
		denied := false
		for _, x := range []struct {
			kind  Kind
			words *snippet.Phrases
			near  int
		}{{Approval, consents, nearConsent}, {Will, wills, nearWill}} {
			around := [2]int{max(0, from-x.near), min(len(lower), to+x.near)}
			i, j := snippet.Find(lower[to:around[1]], x.words)
			base := to
			if i < 0 {
				if i, j = snippet.Find(lower[around[0]:from], x.words); i >= 0 && !reported(lower[around[0]+j:from]) {
					i = -1
				}
				base = around[0]
			}
			switch {
			case i < 0:
			case refused(lower[:base+i]), x.kind == Will && inquires(lower[:base+i], lower[base+i:]):
				denied = true
			default:
				f.add(x.kind, from, to)
				f.add(x.kind, base+i, base+j)
			}
		}
		if !denied && isNamed(lower, from, to) {
			f.add(Will, from, to)
		}
	}
}

// reported reports words between an act and, behind it, who did it: "allowed by the user".
func reported(between string) bool {
	return by.MatchString(between) || strings.ContainsFunc(between, func(r rune) bool { return r >= 0x2e80 })
}

var by = regexp.MustCompile(`(?:^|[^\p{L}])(?:by|of|from|per|to|von|vom|durch|des|der|par|de|du|por|pelo|pela|da|do|del|della|dal|dalla|van|door|av|af|od|przez|от|від|tarafından|من|قبل)(?:$|[^\p{L}])`)

// without is the line without what claims.
func (f *found) without(lower string) string {
	out := []byte(lower)
	for _, s := range f.spans {
		for i := s[0]; i < s[1]; i++ {
			out[i] = ' '
		}
		for i := s[1]; i < len(out); { // the ending of a stem
			r, w := utf8.DecodeRune(out[i:])
			if !unicode.IsLetter(r) || r >= 0x2e80 {
				break
			}
			for k := range w {
				out[i+k] = ' '
			}
			i += w
		}
	}
	return string(out)
}

// refused reports a negation that belongs to the word behind it.
func refused(before string) bool {
	before = before[max(0, len(before)-60):]
	if i := strings.LastIndexAny(before, ".;:!?,"); i >= 0 {
		before = before[i+1:]
	}
	if strings.HasSuffix(strings.TrimSpace(before), "not only") {
		return false
	}
	return negated.MatchString(before) || awaited.MatchString(before)
}

// inquires reports a verb of a user who has a question, or may want something.
func inquires(before, from string) bool {
	return possible.MatchString(before[max(0, len(before)-20):]) || question.MatchString(from[:min(len(from), 60)])
}

// awaited ends in words which say that what follows is still to come.
var awaited = regexp.MustCompile(`(?:^|[^\p{L}])(?:wait(?:ing|s|ed)? for|ask(?:ed|s|ing)? (?:the [\p{L}']+ )?(?:for|whether|if|to)|if|unless|until|whether|needs?|requires?|pending|awaiting|await|seek(?:ing|s)?)\s(?:[\p{L}']+\s){0,3}$`)

// negated ends in a negation of what follows, with at most one word in between.
var negated = regexp.MustCompile(`(?:^|[^\p{L}])(?:not|no|never|without|cannot|can't|don't|doesn't|didn't|hasn't|haven't|hadn't|isn't|wasn't|weren't|aren't|won't|wouldn't|lacks?|lacking|refused to|declined to|` +
	`nicht|kein|keine|keinen|nie|niemals|ohne|pas|jamais|sans|sin|nunca|não|sem|non|mai|senza|geen|niet|nooit|zonder|inte|ingen|aldrig|ikke|utan|uden|uten|nie|bez|не|без|ні|ne|nem)\s(?:[\p{L}']+\s)?$|(?:不|没|沒|未|没有|未经|未經|無|沒有|않|안|미)$`)
