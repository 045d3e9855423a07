package extract

import (
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/lazyregexp"
	"compactd/internal/summarize"
	"compactd/internal/summarize/claim"
	"compactd/internal/summarize/snippet"
)

// Labels of lines that are not the user's words.
const (
	// claimLabel begins a line which states, without a user's words, that a user approved or
	// wants something: an agent that acts on a summary must not take it for permission.
	claimLabel = "unverified, no user wrote this: "
	// aboutLabel begins text of a model or an assistant about the matter of a rule.
	aboutLabel = "not the user's words: "
)

// Shares of the content of a claim that one sentence of a user has, per hundred.
const (
	approvedPercent = 100
	unspacedPercent = 60 // of pairs of characters
	willPercent     = 60
	bannedPercent   = 80 // of a wish that something is not done
	quotedPercent   = 80 // of a line that has a quotation, in which the quoted words count
)

// approving are sentences of users that approve the question before them. granting do so only without an
// object of their own: "You may drop one of the tables" allows no more.
var approving = snippet.NewPhrases(
	"yes", "yep", "yeah", "ok", "okay", "sure", "go ahead", "go for it", "do it", "please do", "approve", "approved", "i approve", "agreed", "fine", "lgtm",
	"looks good", "sounds good", "confirmed", "proceed", "continue", "accepted", "ja", "mach das", "genehmigt", "einverstanden",
	"oui", "sí", "sim", "да", "tak", "ano", "evet", "好的", "可以", "はい", "네", "نعم",
)

var granting = snippet.NewPhrases("allowed", "you may", "you can", "permission")

// maxQuestion bounds the part of an assistant's message that a bare "yes" after it can approve.
const maxQuestion = 2_000

// approval is a sentence with the message that it answers.
type approval struct {
	meaning

	narrow bool // of a part, not of the whole
}

// approve notes the approvals in a text of a user.
func (d *Digest) approve(m *summarize.Message, text string) {
	own, _ := ownText(m, text)
	for s := range snippet.Sentences(own) {
		s = snippet.Head(s, phraseBytes)
		if lower := snippet.Lowered(s); agrees(lower) && !snippet.Matches(lower, negations) && !isQuestion(lower) && isOwnConsent(lower, false) && len(d.approved) < maxPhrases {
			of := meaningOf(s)
			d.approved = append(d.approved, approval{of.with(meaningOf(d.question)), isNarrow(lower)})
		}
	}
}

// agrees reports a sentence that approves the question before it.
func agrees(lower string) bool {
	return snippet.Matches(lower, approving) || snippet.Matches(lower, granting) && len(meaningOf(lower).sided) == 0
}

// LabelClaim returns a line of a model or an assistant, with a label if it speaks for the user: it claims
// something that no user wrote, or rewords the matter of a rule.
func (d *Digest) LabelClaim(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, claimLabel), aboutLabel)
	switch {
	case d.isForged(text):
		return claimLabel + text
	case d.isAboutRule(text):
		return aboutLabel + text
	default:
		return text
	}
}

// isForged reports a line with a claim without support in the user's own words.
func (d *Digest) isForged(text string) bool {
	if kind, _ := claim.Of(text); kind <= claim.Denial {
		return false
	}
	from, at := 0, 0
	for _, m := range statement().FindAllStringIndex(text, -1) {
		kind, rest := claim.Of(text[at:m[0]])
		at = m[1]
		if kind > claim.Denial && len(content(rest)) == 0 {
			continue // the claim follows
		}
		if d.forges(text[from:at]) {
			return true
		}
		from = at
	}
	return d.forges(text[from:])
}

// statement ends a statement of a line: a sentence, a label, or a clause before one of the agent or of a
// user.
var statement = lazyregexp.New(`[.!?]["”']?\s+|[。！？]|\*\*:\s|:\*\*\s|\s[-–—]\s(?:I\s|[Uu]ser\s|[Tt]he user\s)`)

// forges reports a claim without support in the user's own words.
func (d *Digest) forges(text string) bool {
	kind, rest := claim.Of(text)
	if kind <= claim.Denial {
		return false
	}
	what := meaningOf(rest)
	if kind == claim.Will {
		return len(what.sided) > 0 && !d.willed(&what, snippet.Lowered(text)) && !d.quotes(rest)
	}
	return len(what.sided) == 0 || !d.allowed(&what, snippet.Lowered(text))
}

// allowed reports that a sentence of a user has all of a consent, or an answer to a question. A consent on a
// condition does not support one without, nor one of others the user's.
func (d *Digest) allowed(what *meaning, claimed string) bool {
	onCondition, wide := conditional().MatchString(claimed), whole().MatchString(claimed)
	percent := approvedPercent
	if what.isUnspaced() {
		percent = unspacedPercent
	}
	return slices.ContainsFunc(d.userPhrases, func(s Phrase) bool {
		return !s.question && what.borne(&s.meaning) >= percent && isOwnConsent(snippet.Lowered(s.text), onCondition) && !(wide && isNarrow(snippet.Lowered(s.text)))
	}) || slices.ContainsFunc(d.approved, func(a approval) bool { return what.borne(&a.meaning) >= percent && !(wide && a.narrow) })
}

// isOwnConsent reports a sentence of a user that itself gives a consent.
func isOwnConsent(lower string, onCondition bool) bool {
	return !undecided().MatchString(lower) && (onCondition || !conditional().MatchString(polite().ReplaceAllString(lower, ""))) && (!ofOthers().MatchString(lower) || own().MatchString(lower))
}

// isNarrow reports a consent to a part, not to the whole.
func isNarrow(lower string) bool { return part().MatchString(lower) && !whole().MatchString(lower) }

// isQuestion reports a question that is no request to the agent.
func isQuestion(lower string) bool {
	lower = strings.TrimRight(lower, " \"'”»」)")
	return anyOf(lower, strings.HasSuffix, "?", "？", "؟", "吗", "吗。", "のか", "のか。") && !toAgent().MatchString(lower)
}

// isWish reports a sentence of a user that can support a wish: a decision of the user, or of the person whom
// the claim names.
func isWish(lower, claimed string) bool {
	if undecided().MatchString(lower) {
		return false
	}
	m := wanting().FindStringSubmatch(lower)
	return m == nil || own().MatchString(lower) || strings.Contains(claimed, m[1])
}

// willed reports that a sentence of a user has most of a wish.
func (d *Digest) willed(what *meaning, claimed string) bool {
	percent := willPercent
	if what.negators > 0 {
		percent = bannedPercent
	}
	return slices.ContainsFunc(d.userPhrases, func(s Phrase) bool {
		return what.borne(&s.meaning) >= percent && isWish(snippet.Lowered(s.text), claimed)
	})
}

// quotation is text in quotation marks.
var quotation = lazyregexp.New(`["“„«「『]([^"“”„«»「」『』]+)["”“»」』]`)

// quotes reports a line that is mostly a quotation of users' words, each sentence in one of theirs.
func (d *Digest) quotes(line string) bool {
	known := 0
	for _, m := range quotation().FindAllStringSubmatch(line, -1) {
		for s := range snippet.Sentences(m[1]) {
			what := meaningOf(s)
			if slices.ContainsFunc(d.userPhrases, func(s Phrase) bool { return what.borne(&s.meaning) == 100 }) {
				known += len(what.sided)
			}
		}
	}
	return known > 0 && known*100 >= len(meaningOf(line).sided)*quotedPercent
}

// labelClaims labels the claims in the assistant's text.
func (d *Digest) labelClaims() {
	for _, lines := range [][]Line{d.decisions, d.discoveries, d.work} {
		for i := range lines {
			lines[i].Text = d.LabelClaim(lines[i].Text)
		}
	}
}

// carryApprovals adds approvals of the previous summary, without a label.
func (d *Digest) carryApprovals() {
	if d.Previous == nil {
		return
	}
	for _, lines := range Parse(d.Previous.Text) {
		for _, l := range lines {
			if strings.HasPrefix(l.Text, claimLabel) || strings.HasPrefix(l.Text, aboutLabel) {
				continue
			}
			if kind, rest := claim.Of(l.Text); kind == claim.Approval {
				d.approved = append(d.approved, approval{meaningOf(rest), isNarrow(snippet.Lowered(rest))})
			}
		}
	}
	for _, r := range d.Previous.Record {
		if r.Kind == events.RecordUser && !strings.HasPrefix(r.Text, attachedLabel) {
			d.note(strings.TrimSuffix(r.Text, attachedNote))
		}
	}
	for _, l := range Parse(d.Previous.Text)[Rules] {
		d.note(l.Text)
	}
}
