package summarize

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"compactd/internal/summarize/sanitize"
)

// unverifiedLink stands for a link to a host that is nowhere in the prompt.
const unverifiedLink = "[unverified link]"

var (
	// htmlTag is the beginning of a tag that does something where a summary is shown as
	// Markdown or HTML: loads, runs, or looks like a part of the page.
	htmlTag = regexp.MustCompile(`(?i)<(?:/?\s*(?:applet|area|audio|base|body|button|canvas|details|dialog|embed|form|frame|frameset|head|html|iframe|image|img|input|` +
		`link|map|marquee|math|meta|noscript|object|picture|portal|script|select|slot|source|style|svg|template|textarea|title|track|video|xml)\b|` +
		`[a-z][\w:-]*(?:[\s/]+[a-z_:@][\w:@.-]*)*[\s/]*=|!--|!doctype|\?)`)
	// imageMark is an image of Markdown, also one with brackets in its description.
	imageMark = regexp.MustCompile(`!\[[^\n]*?\][(\[]`)
	// definition gives a link or an image that stands elsewhere its address.
	definition = regexp.MustCompile(`(?m)^[\s>*+-]{0,12}\[[^\]\n]{1,300}\]:`)
	// link is an address that a reader can follow, or a page loads. Without a scheme it
	// counts where Markdown or a browser makes a link of it.
	link = regexp.MustCompile("(?i)(?:\\b[a-z][a-z0-9+.-]{1,20}://|\\bwww\\.)[^\\s<>()\\[\\]\"'`|\\\\]+|\\]\\(\\s*<?(?://|javascript:|vbscript:|data:)[^\\s<>()\\[\\]\"'`]*")
)

// edit replaces a part of a normalized text.
type edit struct {
	from, to int
	with     string
}

// inert takes from a text what would load, run or follow an address where it is shown:
// marks of images, tags, definitions of links. It looks at the text as a reader sees it
// (NFKC), and never makes it longer.
func inert(s string) string {
	if !strings.ContainsAny(s, "<!]") && isASCII(s) {
		return s
	}
	t := sanitize.Normalize(s)
	var edits []edit
	for _, m := range htmlTag.FindAllStringIndex(t.S, -1) {
		edits = append(edits, edit{m[0], m[0] + 1, "("})
	}
	for _, m := range imageMark.FindAllStringIndex(t.S, -1) {
		edits = append(edits, edit{m[0], m[0] + 1, ""})
	}
	for _, m := range definition.FindAllStringIndex(t.S, -1) {
		edits = append(edits, edit{m[1] - 1, m[1], "-"})
	}
	return apply(s, &t, edits)
}

// apply makes edits of the normalized text in the original. Of two that touch the same
// characters the first counts.
func apply(s string, t *sanitize.Text, edits []edit) string {
	if len(edits) == 0 {
		return s
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	kept := 0
	for _, e := range edits {
		from, to := t.Original(e.from, e.to)
		if from < kept {
			continue
		}
		b.WriteString(s[kept:from] + e.with)
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

// verified replaces the links of a line whose host is nowhere in the prompt: the model
// made them up, or composed them of what it read.
func (s *source) verified(text string) string {
	t := sanitize.Normalize(text)
	var edits []edit
	for _, m := range link.FindAllStringIndex(t.S, -1) {
		found, begin := t.S[m[0]:m[1]], m[0]
		if rest, ok := strings.CutPrefix(found, "]("); ok {
			rest = strings.TrimLeft(rest, " \t<")
			found, begin = rest, m[1]-len(rest)
		}
		if host := hostOf(found); host == "" || !s.hasHost(host) {
			edits = append(edits, edit{begin, m[1], unverifiedLink})
		}
	}
	return apply(text, &t, edits)
}

// hostOf is the host that a browser would ask for a link, "" where it would ask none.
func hostOf(found string) string {
	if strings.HasPrefix(strings.ToLower(found), "www.") {
		found = "http://" + found
	}
	u, err := url.Parse(strings.TrimRight(found, ".,;:!?*_"))
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// hasHost reports whether the prompt names a host: not a longer one that it is a part of.
func (s *source) hasHost(host string) bool {
	if known, ok := s.hosts[host]; ok {
		return known
	}
	known := false
	if s.misses++; s.misses <= maxMisses {
		for at := 0; !known; {
			i := strings.Index(s.text[at:], host)
			if i < 0 {
				break
			}
			i += at
			known = !hostByteBefore(s.text[:i]) && !hostByteAfter(s.text[i+len(host):])
			at = i + 1
		}
	}
	s.hosts[host] = known
	return known
}

func hostByteBefore(s string) bool {
	return s != "" && (isHostByte(s[len(s)-1]) || s[len(s)-1] == '.')
}

// hostByteAfter: a full stop may end a sentence.
func hostByteAfter(s string) bool {
	return s != "" && (isHostByte(s[0]) || s[0] == '.' && len(s) > 1 && isHostByte(s[1]))
}

func isHostByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c >= 0x80
}
