package summarize

import (
	"regexp"
	"slices"
	"strings"

	"compactd/internal/events"
)

// claimMark begins a line which says that a user approved something, though no user
// wrote so: an agent that acts on a summary must not take it for permission.
const claimMark = "unverified, no user wrote this: "

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
	// approving are sentences of users that approve what they were asked.
	approving = newPhrases(
		"yes", "yep", "yeah", "ok", "okay", "sure", "go ahead", "go for it", "do it", "please do", "approve", "approved", "i approve", "agreed", "fine", "lgtm",
		"looks good", "sounds good", "confirmed", "allowed", "you may", "you can", "permission", "proceed", "continue", "accepted", "ja", "mach das", "genehmigt", "einverstanden",
	)
)

// maxAsked bounds what of an assistant's message a bare "yes" after it can approve.
const maxAsked = 2_000

// approvals lists what users approve in a range: the words of the sentence, and those of
// the message that it answers.
func approvals(in *Input) []saying {
	var out []saying
	asked := ""
	for i := range in.Messages {
		m := &in.Messages[i]
		for k := range m.Parts {
			p := &m.Parts[k]
			switch {
			case p.Kind != events.PartText:
			case m.Role == events.RoleAssistant:
				asked = p.Text[max(0, len(p.Text)-maxAsked):]
			case m.Role == events.RoleUser:
				text, _ := userText(p.Text)
				for s := range sentences(text) {
					s = head(s, 4*ruleUnits)
					if lower := folded(s); matches(lower, approving) && !matches(lower, negations) && len(out) < maxSaid {
						out = append(out, saying{words: words(s + " " + asked)})
					}
				}
			}
		}
	}
	return out
}

// unclaimed returns a line that is no claim of an approval which no user wrote: such a
// one is marked.
func (d *digest) unclaimed(text string) string {
	text = strings.TrimPrefix(text, claimMark)
	lower := folded(text)
	if !claim.MatchString(lower) || matches(lower, negations) {
		return text
	}
	what := saying{words: slices.DeleteFunc(words(text), claimWord.MatchString)}
	switch {
	case len(what.words) == 0 && len(d.approved) > 0:
		return text
	case anyHolds(d.said, what, usersPercent), anyHolds(d.approved, what, usersPercent):
		return text
	default:
		return claimMark + text
	}
}

// markClaims marks the claims among what the assistant said.
func (d *digest) markClaims() {
	for _, lines := range [][]line{d.decisions, d.discoveries, d.work} {
		for i := range lines {
			lines[i].text = d.unclaimed(lines[i].text)
		}
	}
}

// approveAgain adds what the previous summary says was approved, and did not mark.
func (d *digest) approveAgain() {
	if d.previous == nil {
		return
	}
	for _, lines := range parse(d.previous.Text) {
		for _, l := range lines {
			if lower := folded(l.text); !strings.HasPrefix(l.text, claimMark) && claim.MatchString(lower) && !matches(lower, negations) {
				d.approved = append(d.approved, saying{words: words(l.text)})
			}
		}
	}
}
