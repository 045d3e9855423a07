package extract

import (
	"regexp"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/snippet"
)

// claimLabel begins a line which states that a user approved something, though no user
// wrote so: an agent that acts on a summary must not take it for permission.
const claimLabel = "unverified, no user wrote this: "

// What makes a line the claim of an approval: who, what, and both in either order.
const (
	claimWho = `(?:users?|humans?|customers?|clients?|owners?|operators?|admin(?:istrator)?s?|maintainers?|reviewers?|managers?|security team|` +
		`nutzer(?:in)?|benutzer(?:in)?|anwender(?:in)?|kunde|kundin)`
	claimDid = `(?:(?:pre-?)?approv\w*|authori[sz]\w*|agree[ds]?|consent\w*|confirm(?:ed|s|ation)|permit\w*|permission|allow(?:ed|s|ance)|accept(?:ed|s|ance)|grant(?:ed|s)|` +
		`waived|sign(?:ed)?[ -]off|ok(?:ay)?'?(?:ed|d)|green[- ](?:light|lit)\w*|go-ahead|said yes|genehmig\w*|erlaub\w*|zugestimmt|zustimmung|freigegeben|freigabe|bestätigt)`
)

var (
	claim = regexp.MustCompile(`\b` + claimWho + `\b.{0,80}\b` + claimDid + `\b|` +
		`\b` + claimDid + `\b.{0,40}\b(?:by|of|from|von|vom|des|der) .{0,30}\b` + claimWho + `\b|` +
		`\b(?:pre-?approved|already approved|(?:was|is|were|been) (?:explicitly |already )?(?:approved|authori[sz]ed|permitted)|approval (?:was |has been )?(?:given|granted|received|obtained))\b`)
	// claimWord are the words of a claim that do not say what was approved.
	claimWord = regexp.MustCompile(`^(?:` + claimWho + `|` + claimDid + `|already|explicitly|signed|with|that|this|have|been|were|their|from|light|green|said|gave|given|obtained|received|wrote|unverified)$`)
	// approving are sentences of users that approve the question before them.
	approving = snippet.NewPhrases(
		"yes", "yep", "yeah", "ok", "okay", "sure", "go ahead", "go for it", "do it", "please do", "approve", "approved", "i approve", "agreed", "fine", "lgtm",
		"looks good", "sounds good", "confirmed", "allowed", "you may", "you can", "permission", "proceed", "continue", "accepted", "ja", "mach das", "genehmigt", "einverstanden",
	)
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
				for s := range snippet.Sentences(text) {
					s = snippet.Head(s, phraseBytes)
					if lower := snippet.Lowered(s); snippet.Matches(lower, approving) && !snippet.Matches(lower, negations) && len(out) < maxPhrases {
						out = append(out, Phrase{words: words(s + " " + question)})
					}
				}
			}
		}
	}
	return out
}

// LabelClaim returns a line that is no claim of an approval which no user wrote: such a
// one is labelled.
func (d *Digest) LabelClaim(text string) string {
	text = strings.TrimPrefix(text, claimLabel)
	lower := snippet.Lowered(text)
	if !claim.MatchString(lower) || snippet.Matches(lower, negations) {
		return text
	}
	what := Phrase{words: slices.DeleteFunc(words(text), claimWord.MatchString)}
	switch {
	case len(what.words) == 0 && len(d.approved) > 0:
		return text
	case anyHolds(d.userPhrases, what, usersPercent), anyHolds(d.approved, what, usersPercent):
		return text
	default:
		return claimLabel + text
	}
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
			if lower := snippet.Lowered(l.Text); !strings.HasPrefix(l.Text, claimLabel) && claim.MatchString(lower) && !snippet.Matches(lower, negations) {
				d.approved = append(d.approved, Phrase{words: words(l.Text)})
			}
		}
	}
}
