package claim

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/snippet"
)

// Kind is the kind of a claim for a user. Of several in a sentence the greatest counts.
type Kind uint8

// The kinds of claims.
const (
	None     Kind = iota
	Denial        // that there is no consent
	Will          // a wish, decision, statement or act of a user
	Approval      // consent of anyone
)

// The most bytes between an actor and the act of a claim.
const (
	nearConsent = 120
	nearWill    = 48
	nearSpeech  = 24 // of the addressed person
)

// Of returns the claim of a line, and the line without the words of the claim; for a denial also without its
// negation.
func Of(line string) (kind Kind, rest string) {
	text := sanitize.Normalize(snippet.StripInvisible(line)).S
	f := found{text: snippet.Lowered(text), lower: snippet.Lowered(withoutCode(text)), denials: map[int]bool{}}
	if len(f.text) != len(f.lower) {
		f.lower = f.text // a capital has another length than its small letter
	}
	for from, to := range snippet.Each(f.lower, approvals) {
		f.consent(from, to)
	}
	for from, to := range snippet.Each(f.lower, consents) {
		f.denial(from, to)
	}
	for from := range snippet.Each(f.lower, licenceHeads) {
		if n := len(licences().FindString(snippet.Head(f.lower[from:], licensed))); n > 0 {
			f.consent(from, from+n)
		}
	}
	if i := strings.Index(f.lower, licensedEnding); i >= 0 {
		f.consent(i, i+len(licensedEnding))
	}
	for from := range snippet.Each(f.lower, blankets) {
		f.add(Approval, from, from)
	}
	for from, to := range snippet.Each(f.lower, indifferences) {
		f.add(Approval, from, to)
	}
	for from, to := range snippet.Each(f.lower, discussions) {
		if !cites().MatchString(f.lower[to:]) {
			f.add(Will, from, to)
		}
	}
	for _, m := range settings().FindAllStringIndex(f.text, -1) {
		f.add(Approval, m[0], m[1])
	}
	for _, m := range slices.Concat(requested().FindAllStringSubmatchIndex(f.lower, -1), byName().FindAllStringSubmatchIndex(text, -1)) {
		f.add(Will, m[2], min(m[3], len(f.text)))
	}
	for from, to := range snippet.Each(f.lower, oppositions) {
		if unopposed().MatchString(clause(f.lower[:from])) {
			f.add(Approval, from, to)
		}
	}
	for from, to := range snippet.Each(f.lower, questions) {
		if needless(f.lower, from, to) {
			f.add(Approval, from, to)
		}
	}
	for from, to := range snippet.Each(f.lower, orders) {
		if !ofProgram(f.lower, from, to) {
			f.add(Will, from, to)
		}
	}
	for from, to := range snippet.Each(f.lower, actors) {
		if !anyone().MatchString(clause(f.lower[:from])) && !ofCode(f.lower, from, to) {
			f.act(from, to)
		}
	}
	for from, to := range snippet.Each(f.lower, addressed) {
		if !strings.HasPrefix(f.lower[to:], " will ") { // which is German for a wish
			f.acts(from, to, nearSpeech, nearSpeech, false)
		}
	}
	return f.kind, f.rest()
}

// found has the parts of a line that claim something.
type found struct {
	text  string // in small letters
	lower string // text with its code blanked
	kind  Kind
	spans []span
	// denials are the places of denied consents.
	denials map[int]bool
}

type span struct {
	kind     Kind
	from, to int
}

func (f *found) add(k Kind, from, to int) {
	f.spans = append(f.spans, span{k, from, to})
	f.kind = max(f.kind, k)
}

// consent adds the words of a consent, unless it is denied or still awaited, and reports whether it did.
func (f *found) consent(from, to int) bool {
	if f.denial(from, to) || awaited().MatchString(clause(f.lower[:from])) || ofProgram(f.lower, from, to) {
		return false
	}
	f.add(Approval, from, to)
	return true
}

// denial adds the words of a denied consent, and reports whether there are any.
func (f *found) denial(from, to int) bool {
	i, j := denied(f.lower, from, to)
	if i == j {
		return false
	}
	f.denials[from] = true
	f.add(Denial, from, to)
	f.add(Denial, i, j)
	return true
}

// act adds a person with authority, and the nearest consent and wish of that person. Without these the clause
// itself may be about the person.
func (f *found) act(from, to int) {
	f.acts(from, to, nearConsent, nearWill, !f.denies(from, to) && isNamed(f.lower, from, to))
}

// acts is act with distances for consent and wish. named reports whether the clause is about the person.
func (f *found) acts(from, to, consent, will int, named bool) {
	if i, j := f.near(from, to, consents, consent); i >= 0 {
		if f.consent(i, j) {
			f.add(Approval, from, to)
		} else if !ofProgram(f.lower, i, j) {
			named = false
		}
	}
	if i, j := f.near(from, to, wills, will); i >= 0 {
		if inquires(f.lower[:i], f.lower[i:]) || awaited().MatchString(clause(f.lower[:i])) {
			named = false
		} else {
			f.add(Will, from, to)
			f.add(Will, i, j)
		}
	}
	if named || sourced().MatchString(clause(f.lower[:from])) && !ofThing(f.lower[wordEnd(f.lower, to):]) {
		f.add(Will, from, to)
	}
}

// denies reports a denial in the clause of an actor, and adds the actor to it.
func (f *found) denies(from, to int) bool {
	first := from - len(clause(f.lower[:from]))
	last := min(len(f.lower), to+nearConsent)
	if i := strings.IndexAny(f.lower[to:last], ".;:!?,"); i >= 0 {
		last = to + i
	}
	for i := first; i < last; i++ {
		if f.denials[i] {
			f.add(Denial, from, to)
			return true
		}
	}
	return false
}

// near returns the place of words near an actor: after it, or before it with "by" in between.
func (f *found) near(from, to int, words *snippet.Phrases, most int) (int, int) {
	if i, j := snippet.Find(f.lower[to:min(len(f.lower), to+most)], words); i >= 0 {
		return to + i, to + j
	}
	base := max(0, from-most)
	if i, j := snippet.Find(f.lower[base:from], words); i >= 0 && reported(f.lower[base+j:from]) {
		return base + i, base + j
	}
	return -1, -1
}

// reported reports words between an act and its actor after it: "allowed by the user".
func reported(between string) bool {
	return by().MatchString(between) || strings.ContainsFunc(between, func(r rune) bool { return r >= 0x2e80 })
}

var by = lazyregexp.New(`(?:^|[^\p{L}])(?:by|of|from|per|to|von|vom|durch|des|der|par|de|du|por|pelo|pela|da|do|del|della|dal|dalla|van|door|av|af|od|przez|от|від|tarafından|من|قبل)(?:$|[^\p{L}])`)

// rest is the line without its claims.
func (f *found) rest() string {
	out := []byte(f.text)
	for _, s := range f.spans {
		if s.from == s.to || s.kind == Denial && f.kind != Denial {
			continue
		}
		for i := s.from; i < s.to; i++ {
			out[i] = ' '
		}
		for i := s.to; i < len(out); { // the ending of a stem
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
