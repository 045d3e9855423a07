package llm

import (
	"net/url"
	"strings"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/snippet"
)

// unverifiedLink replaces a link to a host that is not in the prompt.
const unverifiedLink = "[unverified link]"

// link is an address that a reader can follow, or a page loads. Without a scheme it
// counts where Markdown or a browser makes a link of it.
var link = lazyregexp.New("(?i)(?:\\b[a-z][a-z0-9+.-]{1,20}://|\\bwww\\.)[^\\s<>()\\[\\]\"'`|\\\\]+|\\]\\(\\s*<?(?://|javascript:|vbscript:|data:)[^\\s<>()\\[\\]\"'`]*")

// verified replaces links of a line to hosts that are not in the prompt: the model made them up, or composed
// them.
func (s *source) verified(text string) string {
	t := sanitize.Normalize(text)
	var edits []snippet.Edit
	for _, m := range link().FindAllStringIndex(t.S, -1) {
		found, begin := t.S[m[0]:m[1]], m[0]
		if rest, ok := strings.CutPrefix(found, "]("); ok {
			rest = strings.TrimLeft(rest, " \t<")
			found, begin = rest, m[1]-len(rest)
		}
		if host := hostOf(found); host == "" || !s.hasHost(host) {
			edits = append(edits, snippet.Edit{From: begin, To: m[1], With: unverifiedLink})
		}
	}
	return snippet.Apply(text, &t, edits)
}

// hostOf is the host that a browser would request for a link, "" for none.
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

// hasHost reports whether the prompt has a host, and not only as part of a longer one.
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
