package sanitize

import (
	"strconv"
	"strings"
)

// Bounds of what is read around an escape, in bytes.
const (
	escapeBefore = 160
	escapeBehind = 240
	maxEscaped   = 24 // of an escape that is escaped itself
)

// unescape is what stands around the escapes of a text, with each as the character that it
// is for: %3D, \u003d, \x3d, \075, =3D, &#61;, &quot;. It is false for a text without any.
func unescape(s string) (Text, bool) {
	var b strings.Builder
	t := Text{size: len(s)}
	printable := strings.Contains(s, "=3D") // quoted-printable
	done, until := 0, 0                     // what was copied, and how far the text around the last escape goes
	plain := func(from, to int) {
		if from < to {
			t.runs = append(t.runs, piece{at: b.Len(), from: from, to: to})
			b.WriteString(s[from:to])
		}
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '%' && s[i] != '\\' && s[i] != '&' && (s[i] != '=' || !printable) {
			continue
		}
		c, n := escaped(s[i:min(len(s), i+maxEscaped)])
		if n == 0 {
			continue
		}
		if from := contextOf(s, i, max(done, until)); i > until && from > done {
			plain(done, until)
			t.runs = append(t.runs, piece{at: b.Len(), from: from, to: from, whole: true})
			b.WriteByte('\n')
			done = from
		}
		plain(done, i)
		t.runs = append(t.runs, piece{at: b.Len(), from: i, to: i + n, whole: true})
		b.WriteByte(c)
		done, until = i+n, min(len(s), i+n+escapeBehind)
		i += n - 1
	}
	if done == 0 {
		return t, false
	}
	plain(done, until)
	t.S = b.String()
	return t, true
}

// contextOf is where the text before an escape begins that is read with it.
func contextOf(s string, i, least int) int {
	least = min(least, i)
	from := max(least, i-escapeBefore)
	if k := strings.LastIndexByte(s[from:i], '\n'); k >= 0 && from > least {
		from += k + 1
	}
	return from
}

// entities are those of HTML that stand in settings.
var entities = map[string]byte{
	"quot": '"', "apos": '\'', "lt": '<', "gt": '>', "colon": ':', "equals": '=', "nbsp": ' ', "commat": '@', "sol": '/', "lbrace": '{', "rbrace": '}', "dollar": '$', "excl": '!', "num": '#',
}

// escaped is the character that s begins with an escape of, and how long that is.
func escaped(s string) (byte, int) {
	switch s[0] {
	case '%':
		i := 1
		for strings.HasPrefix(s[i:], "25") && i+4 <= len(s) && isHexByte(s[i+2]) && isHexByte(s[i+3]) {
			i += 2 // of a percent sign
		}
		return coded(s, i, i+2, 16, 0)
	case '=':
		return coded(s, 1, 3, 16, 0)
	case '\\':
		i := skip(s, 0, 8, backslash)
		if i >= len(s) {
			return 0, 0
		}
		switch {
		case s[i] == 'u' && i+1 < len(s) && s[i+1] == '{':
			end := i + 2 + max(0, strings.IndexByte(s[i+2:], '}'))
			return coded(s, i+2, end, 16, 1)
		case s[i] == 'u':
			return coded(s, i+1, i+5, 16, 0)
		case s[i] == 'x':
			return coded(s, i+1, i+3, 16, 0)
		case digitClass.has(s[i]):
			return coded(s, i, i+3, 8, 0)
		}
		return 0, 0
	}
	i := 1
	for strings.HasPrefix(s[i:], "amp;") {
		i += len("amp;")
	}
	end := strings.IndexByte(s[i:min(len(s), i+9)], ';')
	if end < 1 {
		return 0, 0
	}
	end += i
	if s[i] == '#' && i+1 < end {
		if s[i+1] == 'x' || s[i+1] == 'X' {
			return coded(s, i+2, end, 16, 1)
		}
		return coded(s, i+1, end, 10, 1)
	}
	if c, ok := entities[s[i:end]]; ok {
		return c, end + 1
	}
	return 0, 0
}

var backslash = classOf(`[\\]`)

// coded is the ASCII character whose number stands from one place to another, before an
// end of some bytes.
func coded(s string, from, to, base, ending int) (byte, int) {
	if to <= from || to+ending > len(s) {
		return 0, 0
	}
	c, err := strconv.ParseUint(s[from:to], base, 32)
	if err != nil || c > '~' || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
		return 0, 0
	}
	return byte(c), to + ending
}
