package sanitize

import (
	"strings"
)

// behind finds where the value of a name begins, and what it can be there.
func (f *finder) behind(n *name) (int, syntax, bool) {
	s := f.s
	i := n.to
	quoted := n.from > 0 && quoteByte.has(s[n.from-1])
	f.work += 24
	if v := f.inMarkup(n, quoted); v > 0 {
		return v, inLine, true
	}
	i = skip(s, i, 10, quoteOrSlash)
	closed := i > n.to
	for i < len(s) && (s[i] == ']' || s[i] == ')' && quoted) {
		i++
	}
	if !closed && i < len(s) && (s[i] == ':' || s[i] == '?' || s[i] == '!' || s[i] == ' ') {
		if v := typed(s, i); v > 0 {
			return skip(s, v, 8, anySpace), inCode, true
		}
	}
	k := skip(s, i, 12, blank)
	if k >= len(s) {
		return 0, 0, false
	}
	if !closed && strings.HasPrefix(s[k:], "://") {
		return 0, 0, false // the scheme of a URL
	}
	switch sign, width := signAt(s, k); sign {
	case 0:
		return f.unsigned(n, i, k, closed)
	case ',':
		v := skip(s, k+1, 12, anySpace)
		return v, inCode, (quoted && closed) && v < len(s) && (quoteByte.has(s[v]) || s[v] == '\\')
	case '(':
		v := skip(s, k+1, 4, blank)
		return v, inCode, v < len(s) && (quoteByte.has(s[v]) || s[v] == '\\') && !closed
	default:
		return f.behindSign(n, k, sign, width, quoted, closed)
	}
}

// inMarkup finds the value of a name that is a tag, an attribute or an element of a list of names and values; 0 for none.
func (f *finder) inMarkup(n *name, quoted bool) int {
	s, i := f.s, n.to
	if n.from > 0 && s[n.from-1] == '<' || n.from > 1 && s[n.from-1] == ':' && strings.LastIndexByte(s[max(0, n.from-24):n.from], '<') >= 0 {
		if k := f.tagEnd(i); k > 0 { // <password>…
			return k
		}
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '\\' || s[i] == ',' || s[i] == '\n' || s[i] == '\r' || s[i] == ' ' || s[i] == '`') {
		if k := skip(s, i, 60, valueEdge); k > i && valueHeads[f.low[k:min(len(s), k+3)]] {
			if m := valueSeparator().FindStringIndex(s[i:min(len(s), k+24)]); m != nil {
				return i + m[1]
			}
		}
	}
	if i+1 < len(s) && (quoted && (s[i+1] == '>' || s[i+1] == ' ' || s[i] == '\\') || s[i] == '<' && s[i+1] == '/') && strings.IndexByte(s[i:min(len(s), i+160)], '>') >= 0 {
		if m := elementSeparator().FindStringIndex(s[i:min(len(s), i+160)]); m != nil {
			return i + m[1]
		}
	}
	return 0
}

// behindSign finds the value behind the sign at k, which is ':' or '='.
func (f *finder) behindSign(n *name, k int, sign byte, width int, quoted, closed bool) (int, syntax, bool) {
	s := f.s
	v := skip(s, k+width, 12, blank)
	if strings.HasPrefix(s[v:], "**") || strings.HasPrefix(s[v:], "__") { // bold
		v = skip(s, v+2, 4, blank)
	}
	if v < len(s) && (s[v] == '\n' || s[v] == '\r' || s[v] == '\\' && v+1 < len(s) && s[v+1] == '\n') {
		w := skip(s, v+1, 40, anySpace)
		if item := f.item(w); item > 0 && sign == ':' && n.weight > weak {
			return item, inLine, true
		}
		if sign == ':' && w-v < 3 && !closed || w < len(s) && strings.IndexByte("-#}", s[w]) >= 0 {
			return 0, 0, false // an empty setting
		}
		if line := f.ahead(w, '\n', 120); sign == ':' && strings.ContainsAny(s[w:line], ":") && !strings.ContainsAny(s[w:w+1], quoteSigns) {
			return 0, 0, false // a block of others
		}
		v = w
	}
	if block := yamlBlock(s, v); sign == ':' && block > 0 {
		return block, inLine, true
	}
	how := inCode
	if f.setting(n, k, sign, quoted, closed) {
		how = inLine
	}
	if sign == ':' && how == inCode && !closed && !n.flag && f.sentence(n) {
		how = inProse
	}
	return v, how, true
}

// yamlBlock is where the text of a block in YAML begins, 0 where there is none.
func yamlBlock(s string, v int) int {
	if v >= len(s) || s[v] != '|' && s[v] != '>' {
		return 0
	}
	w := skip(s, v+1, len(s), blockHead)
	if w = skip(s, w, 4, blank); w < len(s) && (s[w] == '\n' || s[w] == '\r') {
		return skip(s, w, 60, anySpace)
	}
	return 0
}

var blockHead = classOf(`[+0-9-]`)

// item is where the only text of a list's first item begins, 0 for none.
func (f *finder) item(i int) int {
	if !strings.HasPrefix(f.s[i:], "- ") {
		return 0
	}
	v := skip(f.s, i+2, 4, blank)
	if line := f.ahead(v, '\n', 120); strings.ContainsAny(f.s[v:line], ":{ ") {
		return 0
	}
	return v
}

// signByte begins a sign.
var signByte = classOf(`[=:,(<?+|-]`)

// signAt is the sign of an assignment at a place, and its width.
func signAt(s string, i int) (byte, int) {
	if !signByte.has(s[i]) {
		return 0, 0
	}
	for _, sign := range []string{"===", "==", "=>", ":=", "::", "->", "<-", "?=", "+=", "||=", "??=", "="} {
		if strings.HasPrefix(s[i:], sign) {
			return '=', len(sign)
		}
	}
	switch s[i] {
	case ':', ',', '(':
		return s[i], 1
	}
	return 0, 0
}

// tagEnd is behind the ">" of a tag whose name ends at i.
func (f *finder) tagEnd(i int) int {
	rest := f.s[i:min(len(f.s), i+80)]
	end := strings.IndexAny(rest, "<>\n")
	if end < 0 || rest[end] != '>' || end > 0 && rest[0] != ' ' {
		return 0
	}
	v := skip(f.s, i+end+1, 20, anySpace)
	if strings.HasPrefix(f.s[v:], "<![CDATA[") {
		v += len("<![CDATA[")
	}
	return v
}

// unsigned looks for a value behind a name without a sign.
func (f *finder) unsigned(n *name, i, k int, closed bool) (int, syntax, bool) {
	s := f.s
	if k == i && !closed {
		if v := f.prose(n.to); v > 0 && n.weight > weak {
			return v, inProse, true
		}
		return 0, 0, false
	}
	spaced := k > i
	switch {
	case n.flag && spaced && s[k] != '-': // --password value
		return k, inLine, true
	case spaced && !closed && quoteByte.has(s[k]) && n.weight == strong && f.low[n.bare:n.to] != "pass": // IDENTIFIED BY PASSWORD 'x', not: pass `x` to it
		return k, inCode, true
	case spaced && !closed && f.directive(n): // ENV DB_PASSWORD x
		return k, inLine, true
	case n.weight > weak:
		if v := f.prose(n.to); v > 0 {
			return v, inProse, true
		}
	}
	return 0, 0, false
}

// directives stand before a name whose value follows without a sign.
var directives = []string{"env ", "arg ", "set ", "setx ", "export ", "config set ", "-g ", "setenv ", "define ", "put ", "add ", "secret set "}

// directive reports a line such as ENV NAME value, or NAME value of a program's
// settings.
func (f *finder) directive(n *name) bool {
	line := f.back(n.from, '\n', 80)
	before := strings.TrimLeft(f.low[line:n.from], " \t$>#+")
	if before != "" {
		return hasAny(before, directives, strings.HasSuffix)
	}
	bare := f.low[n.bare:n.to]
	return bare == "requirepass" || bare == "masterauth" || strings.Contains(f.s[n.bare:n.to], "_") && upper(f.s[n.bare:n.to])
}

func upper(s string) bool { return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" }

// setting reports whether name, sign and value are a line of settings, a flag or
// part of a URL, where a value needs no quotes.
func (f *finder) setting(n *name, k int, sign byte, quoted, closed bool) bool {
	s := f.s
	tight := k == n.to && k+1 < len(s) && !anySpace.has(s[k+1])
	if n.flag && !quoted {
		return sign == '=' || sign == ':'
	}
	if n.from > 0 && (s[n.from-1] == '?' || s[n.from-1] == '&' || s[n.from-1] == ';') && sign == '=' && tight {
		return true
	}
	if n.from > 4 && strings.HasSuffix(f.low[:n.from], "$env:") {
		return true
	}
	if sign == '=' && tight && upper(s[n.bare:n.to]) && s[k+1] != '=' {
		return true
	}
	line := f.back(n.from, '\n', 120)
	before := strings.TrimLeft(s[line:n.from], " \t>+$*_#|")
	before = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(before, "- "), "export "), "\"'")
	if before != "" {
		if sign == '=' && tight && strings.HasSuffix(before, " ") && !closed { // a=b c=d
			return !strings.ContainsAny(s[line:n.from], "(){}") && !strings.Contains(s[line:n.from], "//")
		}
		return false
	}
	end := f.ahead(k, '\n', 300)
	rest := strings.TrimRight(s[k:end], " \t\r")
	if closed {
		return false
	}
	if sign == ':' || sign == '=' {
		return !strings.HasSuffix(rest, ";") && !strings.HasSuffix(rest, ",") && !strings.HasSuffix(rest, "{") && !strings.HasPrefix(rest, "==") &&
			!strings.HasPrefix(rest, ":=") && !strings.HasPrefix(rest, "=>") && (n.weight == strong || tight && sign == '=') && strings.Count(rest, " ") <= 2 && (upper(s[n.bare:n.to]) || s[n.bare:n.to] == f.low[n.bare:n.to] || sign == ':')
	}
	return false
}

// sentence reports whether words stand before a name in its line.
func (f *finder) sentence(n *name) bool {
	line := f.back(n.from, '\n', 80)
	return strings.Contains(strings.TrimSpace(f.s[line:n.from]), " ")
}
