package extract

import (
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/attached"
	"compactd/internal/summarize/claim"
	"compactd/internal/summarize/snippet"
)

// Labels of lines that a reader must not take for the user's words.
const (
	// claimLabel begins a line which states that a user approved or wants something, though
	// no user wrote so: an agent that acts on a summary must not take it for permission.
	claimLabel = "unverified, no user wrote this: "
	// aboutLabel begins what a model or an assistant wrote about the matter of a rule.
	aboutLabel = "not the user's words: "
)

// Shares of the content of a claim that a user's words must have, per hundred.
const (
	approvedPercent = 60 // in one sentence
	willPercent     = 60 // in all of them
)

// approving are sentences of users that approve the question before them.
var approving = snippet.NewPhrases(
	"yes", "yep", "yeah", "ok", "okay", "sure", "go ahead", "go for it", "do it", "please do", "approve", "approved", "i approve", "agreed", "fine", "lgtm",
	"looks good", "sounds good", "confirmed", "allowed", "you may", "you can", "permission", "proceed", "continue", "accepted", "ja", "mach das", "genehmigt", "einverstanden",
	"oui", "sí", "sim", "да", "tak", "ano", "evet", "好的", "可以", "はい", "네", "نعم",
)

// maxQuestion bounds what of an assistant's message a bare "yes" after it can approve.
const maxQuestion = 2_000

// approvals lists what users approve in a range: the words of the sentence, and those of
// the message that it answers.
func approvals(in *summarize.Input) []Phrase {
	var out []Phrase
	question := ""
	for i := range in.Messages {
		m := &in.Messages[i]
		for k := range m.Parts {
			p := &m.Parts[k]
			switch {
			case p.Kind != events.PartText:
			case m.Role == events.RoleAssistant:
				question = p.Text[max(0, len(p.Text)-maxQuestion):]
			case m.Role == events.RoleUser:
				text, _ := UserText(p.Text)
				own, _ := attached.Own(text)
				for s := range snippet.Sentences(own) {
					s = snippet.Head(s, phraseBytes)
					if lower := snippet.Lowered(s); snippet.Matches(lower, approving) && !snippet.Matches(lower, negations) && len(out) < maxPhrases {
						out = append(out, Phrase{content: content(s + " " + question)})
					}
				}
			}
		}
	}
	return out
}

// LabelClaim returns a line of a model or an assistant, labelled where it speaks for the user:
// it claims what no user wrote, or rewords the matter of a rule.
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

// isForged reports a claim that the user's own words do not bear out.
func (d *Digest) isForged(text string) bool {
	kind, rest := claim.Of(text)
	if kind == claim.None {
		return false
	}
	what := Phrase{content: content(rest), negated: PhraseOf(rest).negated}
	if kind == claim.Will {
		return len(what.content) > 0 && d.writtenShare(what.content) < willPercent
	}
	bears := func(s Phrase) bool {
		return !s.question && s.negated == what.negated && share(what.content, s.content) >= approvedPercent
	}
	return len(what.content) == 0 || !slices.ContainsFunc(d.userPhrases, bears) && !slices.ContainsFunc(d.approved, bears)
}

// writtenShare is how many per hundred of some content users wrote anywhere.
func (d *Digest) writtenShare(what []string) int {
	known := 0
	for _, w := range what {
		if d.written[w] {
			known++
		}
	}
	return known * 100 / max(1, len(what))
}

// labelClaims labels the claims among what the assistant wrote.
func (d *Digest) labelClaims() {
	for _, lines := range [][]Line{d.decisions, d.discoveries, d.work} {
		for i := range lines {
			lines[i].Text = d.LabelClaim(lines[i].Text)
		}
	}
}

// carryApprovals adds what is approved by the previous summary, without a label.
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
				d.approved = append(d.approved, Phrase{content: content(rest), negated: PhraseOf(rest).negated})
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
