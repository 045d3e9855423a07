package sanitize

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// ownUse looks at a text where it has one of the words.
type ownUse struct {
	words []string
	look  func(f *finder, from, to int)
}

// state is what own rules remember on their way through a text, so that no part of
// it is looked at again and again.
type state struct {
	name    int        // end of the name that was judged last
	quotes  [8]stretch // by the kind of quote: where the last literal began and ended
	values  [2]stretch // the last values without quotes, in code and in lines
	command int        // end of the command that was read last
	row     int        // beginning of the line that is no header of a table
	table   tableState
	line    stretch // the last line that was looked up
	header  int     // end of the last header or cookies
	piped   int     // what was read last of a pipe
	pgpass  int     // end of the last line of such
	keyMark stretch // from where to where the next end of a key was looked for
	marked  bool    // whether there is one
	digest  int     // end of what digests were looked for in
	pem     int     // end of the last private key
}

// keyWords are what every name of a secret has a part of.
var keyWords = []string{
	"pass", "pwd", "psw", "pw", "psk", "secret", "token", "key", "auth", "cred", "sig", "sid", "session", "jwt", "dsn", "seed", "mnemonic", "bearer", "cookie", "webhook",
	"connectionstring", "totp", "_pat", "adgangskode", "contrasen", "geslo", "haslo", "heslo", "jelszo", "katasandi", "kennwort", "losenord", "lozinka",
	"matkhau", "mdp", "parol", "parool", "salasana", "senha", "sifre", "slaptazodis", "wachtwoord", "zaporka", "clave", "jeton", "geheimnis", "segredo", "fjalekalimi", "schlussel",
}

func ownUses() []ownUse {
	return append([]ownUse{
		{keyWords, (*finder).named},
		{append(append([]string{}, foreign...), phrases...), (*finder).foreign},
	}, forms()...)
}

var (
	identByte  = classOf(`[\w.-]`)
	identTail  = classOf(`[\w-]`)
	blank      = classOf(`[ \t]`)
	anySpace   = classOf(`[ \t\r\n]`)
	quoteByte  = classOf("[`'\"]")
	quoteSigns = "\"'`"
)

const maxName = 64

// named judges the name that a word is part of, and the value that it has.
func (f *finder) named(from, to int) {
	if from < f.state.name {
		return // part of the name that was judged last
	}
	s := f.s
	start := from
	for start > max(0, from-maxName, f.state.name) && identByte.has(s[start-1]) {
		start--
	}
	end := to
	for end < min(len(s), to+maxName) && (identTail.has(s[end]) || s[end] == '.' && end+1 < len(s) && wordClass.has(s[end+1])) {
		end++
	}
	f.work += end - start
	f.state.name = end
	dashes := len(s[start:end]) - len(strings.TrimLeft(s[start:end], "-"))
	n := name{from: start, bare: start + dashes, to: end, flag: dashes > 0}
	n.weight = weigh(s[n.bare:end])
	if n.weight <= weak && s[n.bare:end] != "" {
		n.weight = max(n.weight, f.spaced(&n))
	}
	if n.weight == noSecret {
		return
	}
	f.valueOf(&n)
}

// name is a name of a secret in a text.
type name struct {
	from, bare, to int // bare is behind the dashes of a flag
	flag           bool
	weight         weight
}

// spaced weighs a name that is written with spaces: API key, client secret.
func (f *finder) spaced(n *name) weight {
	s := f.s
	last := strings.ToLower(s[n.bare:n.to])
	if last != "key" && last != "keys" && last != "phrase" && last != "code" || n.from < 3 || s[n.from-1] != ' ' {
		return noSecret
	}
	start := n.from - 1
	for start > max(0, n.from-16) && wordClass.has(s[start-1]) {
		start--
	}
	before := strings.ToLower(s[start : n.from-1])
	switch {
	case last == "key" && keyed[before]:
		return medium
	case last == "phrase" && (before == "pass" || before == "seed" || before == "recovery"), last == "code" && before == "pass":
		return strong
	}
	return noSecret
}

// foreign judges the value of a word for a password in another language.
func (f *finder) foreign(from, to int) {
	if r, _ := utf8.DecodeRuneInString(f.s[to:]); r < 0x3000 && r >= 'A' && wordRune(r) {
		return // a longer word
	}
	f.state.name = to
	f.valueOf(&name{from: from, bare: from, to: to, weight: strong})
}

func wordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0xc0 && r < 0x3000
}

// valueOf looks for the value of a name, and notes it if it is a secret.
func (f *finder) valueOf(n *name) {
	at, how, ok := f.behind(n)
	if !ok {
		f.table(n)
		return
	}
	f.judge(n, at, how)
}

// judge reads the value at a place.
func (f *finder) judge(n *name, at int, how syntax) {
	v, how := f.literal(at, how)
	if v.to-v.from > maxValue {
		v.to = v.from + maxValue
	}
	if v.from >= v.to || f.covered(v) {
		return
	}
	text := f.s[v.from:v.to]
	if i := skip(text, 0, maxName, noSign); how != inQuotes && i > 0 && i < min(maxName, len(text)-2) && (weigh(text[:i]) != noSecret || foreignSet[lowered(text[:i])] || i > 3 && foreignEnd(text[:i])) {
		f.work += i
		return // another name with its own value
	}
	f.work += 4 * min(len(text), judged)
	secret := isSecret(text, n.weight, how)
	if !secret && n.weight == medium && strings.HasSuffix(f.low[n.bare:n.to], "auth") && len(text) >= 8 && isLogin(text) {
		secret = true
	}
	if secret {
		f.found = append(f.found, v)
	}
}

var noSign = classOf(`[^=:]`)

var (
	// valueMark stands between a name that is a value itself and the value it is for.
	valueMark = regexp.MustCompile(`^[\\"'\x60]{0,8}(?:\s{0,3},\s{0,20}|\s{0,3}\r?\n[ \t]{0,20}|\s{1,3})(?:\{\s{0,8})?[\\"'\x60]{0,8}(?i:value|val|default|defaultvalue|secretstring|content|data|plaintext)[\\"'\x60]{0,8}\s{0,3}(?::|=>|=)\s{0,4}`)
	// elementMark stands between the name in an attribute or element and its text.
	elementMark = regexp.MustCompile(`^(?:[\\"']{1,4}(?:\s{1,4}[\w:.-]{1,30}=(?:"[^"<>]{0,40}"|'[^'<>]{0,40}')){0,3}\s{0,3}>|</(?:key|name|string|dt|th|td|b|strong|label)>\s{0,20}:?\s{0,20}<(?:string|value|dd|td|code|b|data|kbd|pre|span)>)\s{0,20}`)
	proseMark   = regexp.MustCompile(`^[*_"'\x60]{0,3}(?:\s{0,2}(?:for|of|to|on|de|für|für den)\s[\w@.'/ -]{1,40}?)?(?:\s{0,2}\([^()\n]{0,40}\))?[*_]{0,3}(?:\s{0,3}:[*_]{0,3}\s{0,4}|\s{1,3}(?:is now|is|was|will be|set to|ist|lautet|est|es|é|è|är|er|on|jest|je|это|equals|to|as|=)\s{0,2}:?\s{1,4}|\s{0,2}(?:是|为|は|は、|의|=)\s{0,3})`)
)

var (
	beforeMark = classOf("[\\\\\"'`,\\s{]")
	valueHeads = wordSet("val def sec con dat pla")
	proseHeads = wordSet("is was will set ist lautet est es é è är er on jest je это equals to as for of de für")
)

// prose is where the value of a name in a sentence begins, 0 for none.
func (f *finder) prose(i int) int {
	s := f.s
	k := skip(s, i, 6, proseGap)
	if k >= len(s) {
		return 0
	}
	if s[k] < 0x80 && s[k] != ':' && s[k] != '=' && s[k] != '(' || s[k] >= 0x80 && s[k] < 0xe0 {
		word := k
		for word < min(len(s), k+8) && (letterClass.has(s[word]) || s[word] >= 0x80) {
			word++
		}
		if !proseHeads[s[k:word]] {
			return 0
		}
	}
	word := k
	for word < min(len(s), k+8) && (letterClass.has(s[word]) || s[word] >= 0x80) {
		word++
	}
	switch {
	case s[k] == ':' || s[k] == '=':
		return skip(s, k+1, 6, proseGap)
	case s[k] != '(' && !prepositions[s[k:word]] && word < len(s) && blank.has(s[word]) && s[k] < 0xe0:
		v := skip(s, word, 6, blank)
		if v < len(s) && s[v] == ':' {
			v = skip(s, v+1, 6, blank)
		}
		for _, more := range []string{"now ", "set to "} {
			if strings.HasPrefix(s[v:], more) {
				v += len(more)
			}
		}
		return v
	}
	rest := s[i:min(len(s), i+110)]
	if k+3 < len(s) && (s[k] == '(' || s[k] == 'f' || s[k] == 'o' || s[k] == 'd') && !strings.ContainsAny(rest[:min(len(rest), 64)], ":=") && !strings.Contains(rest[:min(len(rest), 64)], " is ") {
		return 0
	}
	f.work += len(rest)
	if m := proseMark.FindStringIndex(rest); m != nil {
		return i + m[1]
	}
	return 0
}

var prepositions = wordSet("for of to on de für will set")

var proseGap = classOf("[ \t*_\"'`]")

// typed is behind the sign of an assignment to a variable whose type stands before
// the sign, 0 for none.
func typed(s string, i int) int {
	k := skip(s, i, 4, anySpace)
	spaced := k > i
	if k < len(s) && (s[k] == '?' || s[k] == '!') {
		k++
	}
	colon := k < len(s) && s[k] == ':'
	if colon {
		k = skip(s, k+1, 4, anySpace)
		if k < len(s) && s[k] == '&' {
			k++
		}
	} else if !spaced {
		return 0
	}
	from := k
	for k < min(len(s), from+32) && (wordClass.has(s[k]) || s[k] == '.') {
		k++
	}
	if k == from || !colon && !typeNames[s[from:k]] {
		return 0
	}
	if k < len(s) && (s[k] == '<' || s[k] == '[' || s[k] == '*') {
		for end := min(len(s), k+48); k < end && (wordClass.has(s[k]) || strings.IndexByte("<>[], |*", s[k]) >= 0) && s[k] != '='; k++ {
		}
	}
	if k < len(s) && s[k] == '?' {
		k++
	}
	if k = skip(s, k, 4, blank); k < len(s) && s[k] == '|' {
		k = skip(s, k+1, 24, typeRest)
	}
	if k+1 < len(s) && s[k] == '=' && s[k+1] != '=' {
		return k + 1
	}
	return 0
}

var (
	typeRest  = classOf(`[\w |]`)
	typeNames = wordSet("string str String char text NSString")
)

// behind says where the value of a name begins, and what it can be there.
func (f *finder) behind(n *name) (int, syntax, bool) {
	s := f.s
	i := n.to
	quoted := n.from > 0 && quoteByte.has(s[n.from-1])
	f.work += 24
	if n.from > 0 && s[n.from-1] == '<' || n.from > 1 && s[n.from-1] == ':' && strings.LastIndexByte(s[max(0, n.from-24):n.from], '<') >= 0 {
		if k := f.tagEnd(i); k > 0 { // <password>…
			return k, inLine, true
		}
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '\\' || s[i] == ',' || s[i] == '\n' || s[i] == '\r' || s[i] == ' ' || s[i] == '`') {
		if k := skip(s, i, 60, beforeMark); k > i && valueHeads[f.low[k:min(len(s), k+3)]] {
			if m := valueMark.FindStringIndex(s[i:min(len(s), k+24)]); m != nil {
				return i + m[1], inLine, true
			}
		}
	}
	if i+1 < len(s) && (quoted && (s[i+1] == '>' || s[i+1] == ' ' || s[i] == '\\') || s[i] == '<' && s[i+1] == '/') && strings.IndexByte(s[i:min(len(s), i+160)], '>') >= 0 {
		if m := elementMark.FindStringIndex(s[i:min(len(s), i+160)]); m != nil {
			return i + m[1], inLine, true
		}
	}
	for i < min(len(s), n.to+10) && (s[i] == '\\' || quoteByte.has(s[i])) {
		i++
	}
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
	sign, width := signAt(s, k)
	if sign == 0 {
		return f.unsigned(n, i, k, quoted, closed)
	}
	if sign == ',' {
		v := skip(s, k+1, 12, anySpace)
		return v, inCode, (quoted && closed) && v < len(s) && (quoteByte.has(s[v]) || s[v] == '\\')
	}
	if sign == '(' {
		v := skip(s, k+1, 4, blank)
		return v, inCode, v < len(s) && (quoteByte.has(s[v]) || s[v] == '\\') && !closed
	}
	v := skip(s, k+width, 12, blank)
	if strings.HasPrefix(s[v:], "**") || strings.HasPrefix(s[v:], "__") { // bold
		v = skip(s, v+2, 4, blank)
	}
	if v < len(s) && (s[v] == '\n' || s[v] == '\r' || s[v] == '\\' && v+1 < len(s) && s[v+1] == '\n') && (sign == ':' || sign == '=') {
		w := skip(s, v+1, 40, anySpace)
		if sign == ':' && w-v < 3 && !closed || w < len(s) && strings.IndexByte("-#}", s[w]) >= 0 {
			return 0, 0, false // an empty setting
		}
		if line := f.ahead(w, '\n', 120); sign == ':' && strings.ContainsAny(s[w:line], ":") && !strings.ContainsAny(s[w:w+1], quoteSigns) {
			return 0, 0, false // a block of others
		}
		v = w
	}
	if sign == ':' && v < len(s) && (s[v] == '|' || s[v] == '>') { // a block in YAML
		w := v + 1
		for w < len(s) && strings.IndexByte("+-0123456789", s[w]) >= 0 {
			w++
		}
		if w = skip(s, w, 4, blank); w < len(s) && (s[w] == '\n' || s[w] == '\r') {
			return skip(s, w, 60, anySpace), inLine, true
		}
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
func (f *finder) unsigned(n *name, i, k int, quoted, closed bool) (int, syntax, bool) {
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
	case spaced && !closed && quoteByte.has(s[k]) && n.weight == strong: // IDENTIFIED BY PASSWORD 'x'
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
	for _, d := range directives {
		if strings.HasSuffix(before, d) {
			return true
		}
	}
	if before != "" {
		return false
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
			!strings.HasPrefix(rest, ":=") && !strings.HasPrefix(rest, "=>") && (n.weight == strong || tight && sign == '=') && strings.Count(rest, " ") <= 2 && (upper(s[n.bare:n.to]) || lowerName(s[n.bare:n.to]) || sign == ':')
	}
	return false
}

func lowerName(s string) bool { return s == strings.ToLower(s) }

// sentence reports whether words stand before a name in its line.
func (f *finder) sentence(n *name) bool {
	line := f.back(n.from, '\n', 80)
	return strings.Contains(strings.TrimSpace(f.s[line:n.from]), " ")
}

// quoteKinds are the pairs of quotes of a literal.
var quoteKinds = []struct{ open, close string }{
	{`"`, `"`}, {`'`, `'`}, {"`", "`"}, {"“", "”"}, {"‘", "’"}, {"«", "»"}, {"„", "“"}, {"「", "」"},
}

// literal is the value at a place: in its quotes, or as far as it goes without.
func (f *finder) literal(at int, how syntax) (span, syntax) {
	s := f.s
	for k := 0; k < 3 && at < len(s) && (s[at] == '*' || s[at] == '_') && (how == inProse || how == inLine); k++ {
		at++ // bold
	}
	i := at
	for i < min(len(s), at+3) && strings.IndexByte("bBrRfFuUL@$", s[i]) >= 0 {
		i++
	}
	if i == at || i < len(s) && !quoteByte.has(s[i]) {
		i = at
	}
	if i < len(s) && (s[i] == '[' || s[i] == '{') && i+1 < len(s) && quoteByte.has(s[i+1]) {
		i++
	}
	slashes := 0
	for i+slashes < min(len(s), i+8) && s[i+slashes] == '\\' {
		slashes++
	}
	for kind, q := range quoteKinds {
		if !strings.HasPrefix(s[i+slashes:], q.open) {
			continue
		}
		from := i + slashes + len(q.open)
		if three := strings.Repeat(q.open, 2); slashes == 0 && kind < 3 && strings.HasPrefix(s[from:], three) && !strings.HasPrefix(s[from:], three+"\n") {
			from += len(three)
		}
		to := f.quoteEnd(kind, q.close, from, slashes > 0)
		if to < 0 {
			return f.unquoted(from, how), how
		}
		return span{from, to}, inQuotes
	}
	return f.unquoted(at, how), how
}

// quoteEnd is the end of a literal: its quote, escaped or not as it began; -1 if
// there is none in its line.
func (f *finder) quoteEnd(kind int, quote string, from int, escaped bool) int {
	if escaped {
		memo := &f.state.quotes[0]
		if kind > 0 {
			memo = &f.state.quotes[1]
		}
		return f.quoteIn(memo, quote, from, true)
	}
	return f.quoteIn(&f.state.quotes[2+min(kind, 5)], quote, from, false)
}

func (f *finder) quoteIn(memo *stretch, quote string, from int, escaped bool) int {
	if memo.from <= from && from <= memo.to && memo.to > 0 {
		if memo.to < len(f.s) && strings.HasPrefix(f.s[memo.to:], quote) || memo.to < len(f.s) && f.s[memo.to] == '\\' {
			return memo.to
		}
		if !escaped {
			return -1
		}
	}
	s := f.s
	end := min(len(s), from+maxValue)
	i := from
	for ; i < end && s[i] != '\n'; i++ {
		if s[i] == '\\' && i+1 < end {
			if escaped && strings.HasPrefix(s[i+1:], quote) {
				break
			}
			if !escaped {
				i++
			}
			continue
		}
		if !escaped && s[i] == quote[0] && strings.HasPrefix(s[i:], quote) {
			break
		}
	}
	i = min(i, end)
	f.work += i - from
	*memo = stretch{from, i}
	if i == end || s[i] == '\n' {
		return -1
	}
	return i
}

// valueEnds end a value without quotes; those of a line do not hold bytes that only
// code puts behind one.
var (
	codeEnds = classOf("[\\s\"'`,;)\\]}<>|&\\\\]")
	lineEnds = classOf("[\\s\"'`<>|\\\\]")
)

// unquoted is the value at a place as far as it goes.
func (f *finder) unquoted(at int, how syntax) span {
	s := f.s
	ends, memo := &codeEnds, &f.state.values[0]
	if how == inLine {
		ends, memo = &lineEnds, &f.state.values[1]
	}
	i := at
	if at > memo.from && at < memo.to {
		i = memo.to // the end of the value that this one is a part of
	}
	scanned := i
	for i < min(len(s), at+maxValue) {
		if ends.has(s[i]) {
			switch {
			case s[i] == '<' && i == at, i == at && s[i] == '&', i > at && (s[i] == '"' || s[i] == '\'' || s[i] == '<' || s[i] == '>') && how == inLine && i+1 < len(s) && !lineEnds.has(s[i+1]) && s[i+1] != ',' && s[i+1] != ']' && s[i+1] != '}' && s[i+1] != '/' && s[i+1] != ')' && s[i+1] != ';':
				i++
				continue
			case s[i] == '}' || s[i] == ')':
				if strings.IndexByte(s[at:i], s[i]-map[byte]byte{'}': 2, ')': 1}[s[i]]) >= 0 {
					i++
					continue
				}
			}
			break
		}
		if how == inLine && (s[i] == '&' || s[i] == ';') && f.separator(at, i) {
			break
		}
		i++
	}
	f.work += i - scanned
	*memo = stretch{at, i}
	v := span{at, i}
	for v.to > v.from && strings.IndexByte(".,:;!", s[v.to-1]) >= 0 && how != inLine || v.to > v.from && how == inLine && strings.IndexByte(",;", s[v.to-1]) >= 0 {
		v.to--
	}
	return v
}

// separator reports whether a sign ends a value of a URL, a connection or a command,
// and is no part of a password: another name with a value follows, or a space.
func (f *finder) separator(at, i int) bool {
	s := f.s
	if i+1 >= len(s) || anySpace.has(s[i+1]) || s[i+1] == '&' || s[i+1] == '|' || i == at {
		return true
	}
	k := i + 1
	for k < min(len(s), i+40) && (identByte.has(s[k]) || s[k] == ' ' || s[k] == '%') {
		k++
	}
	f.work += k - i
	return k < len(s) && k > i+1 && s[k] == '='
}
