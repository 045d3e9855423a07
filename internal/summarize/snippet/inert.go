package snippet

import (
	"cmp"
	"slices"
	"strings"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/sanitize"
)

var (
	// htmlTag is the beginning of a tag that does something where a summary is shown as
	// Markdown or HTML: loads, runs, or looks like a part of the page.
	htmlTag = lazyregexp.New(`(?i)<(?:/?\s*(?:applet|area|audio|base|body|button|canvas|details|dialog|embed|form|frame|frameset|head|html|iframe|image|img|input|` +
		`link|map|marquee|math|meta|noscript|object|picture|portal|script|select|slot|source|style|svg|template|textarea|title|track|video|xml)\b|` +
		`[a-z][\w:-]*(?:[\s/]+[a-z_:@][\w:@.-]*)*[\s/]*=|!--|!doctype|\?)`)
	// imagePattern is an image of Markdown, also one with brackets in its description.
	imagePattern = lazyregexp.New(`!\[[^\n]*?\][(\[]`)
	// definition gives a link or an image that stands elsewhere its address.
	definition = lazyregexp.New(`(?m)^[\s>*+-]{0,12}\[[^\]\n]{1,300}\]:`)
)

// Edit replaces a part of a normalized text.
type Edit struct {
	From, To int
	With     string
}

// Inert takes from a text what would load, run or follow an address where it is shown:
// marks of images, tags, definitions of links. It looks at the text as a reader sees it
// (NFKC), and never makes it longer.
func Inert(s string) string {
	if !strings.ContainsAny(s, "<!]") && isASCII(s) {
		return s
	}
	t := sanitize.Normalize(s)
	var edits []Edit
	for _, m := range htmlTag().FindAllStringIndex(t.S, -1) {
		edits = append(edits, Edit{m[0], m[0] + 1, "("})
	}
	for _, m := range imagePattern().FindAllStringIndex(t.S, -1) {
		edits = append(edits, Edit{m[0], m[0] + 1, ""})
	}
	for _, m := range definition().FindAllStringIndex(t.S, -1) {
		edits = append(edits, Edit{m[1] - 1, m[1], "-"})
	}
	return Apply(s, &t, edits)
}

// Apply makes edits of the normalized text in the original. Of two that touch the same
// characters the first counts.
func Apply(s string, t *sanitize.Text, edits []Edit) string {
	if len(edits) == 0 {
		return s
	}
	slices.SortStableFunc(edits, func(a, b Edit) int { return cmp.Compare(a.From, b.From) })
	var b strings.Builder
	kept := 0
	for _, e := range edits {
		from, to := t.Original(e.From, e.To)
		if from < kept {
			continue
		}
		b.WriteString(s[kept:from] + e.With)
		kept = to
	}
	return b.String() + s[kept:]
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
