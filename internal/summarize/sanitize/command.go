package sanitize

import (
	_ "embed" // the programs
	"slices"
	"strconv"
	"strings"
)

// program has, by kind, the flags for a password that a command has; see
// rules/programs.txt.
type program map[string][]string

//go:embed rules/programs.txt
var programLines string

// programs has them by name.
var programs = func() map[string]program {
	out := map[string]program{}
	for line := range strings.Lines(programLines) {
		names, kinds, ok := strings.Cut(line, ":")
		if !ok || line[0] == '#' {
			continue
		}
		p := program{}
		for kind := range strings.SplitSeq(kinds, ", ") {
			words := strings.Fields(kind)
			p[words[0]] = words[1:]
		}
		for name := range strings.FieldsSeq(names) {
			out[name] = p
		}
	}
	return out
}()

// maxCommand bounds how much of a command is read.
const maxCommand = 400

// argument is one of a command.
type argument struct {
	span
	text string
}

// command finds passwords among the arguments of a program.
func (f *finder) command(from, to int) {
	s := f.s
	if from < f.state.command || to >= len(s) || f.wordAt(from-1) || from > 0 && (s[from-1] == '-' || s[from-1] == '.') {
		return
	}
	k := skip(s, to, 6, backslash)
	if k < len(s) && quoteByte.has(s[k]) {
		k++
	}
	if k >= len(s) || s[k] != ' ' && s[k] != '\n' && k == to {
		return
	}
	name := f.low[from:to]
	args, end := f.arguments(k)
	f.work += 2 * (end - from)
	if f.passwords(programs[name], args) {
		f.state.command = end
	}
	f.state.command = max(f.state.command, min(end, from+40))
}

// hasVerb reports one of the program's verbs; flags may be written as one.
func (p program) hasVerb(a argument) bool {
	return slices.Contains(p["verbs"], a.text) || slices.Contains(p["verbs"], "-b") && strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "b")
}

// passwords notes those among the arguments that a program takes as such.
func (f *finder) passwords(p program, args []argument) (any bool) {
	if len(p["verbs"]) > 0 && !slices.ContainsFunc(args, p.hasVerb) {
		return false
	}
	var bare []argument
	for i, a := range args {
		if !strings.HasPrefix(a.text, "-") && !slices.Contains(p["verbs"], a.text) {
			bare = append(bare, a)
		}
		for _, flag := range p["separate"] {
			if a.text == flag && i+1 < len(args) && !strings.HasPrefix(args[i+1].text, "-") {
				any = f.password(args[i+1].span) || any
			}
		}
		for _, flag := range p["joined"] {
			if rest, ok := strings.CutPrefix(a.text, flag); ok && rest != "" && !strings.HasPrefix(a.text, "--") && (len(flag) > 2 || !flagWords[a.text]) {
				any = f.password(span{a.from + len(flag), a.to}) || any
			}
		}
		for _, flag := range p["pair"] {
			v, ok := argument{}, false
			if a.text == flag && i+1 < len(args) {
				v, ok = args[i+1], true
			} else if rest, cut := strings.CutPrefix(a.text, flag); cut && rest != "" && rest[0] != '-' {
				n := len(flag)
				if rest[0] == '=' {
					n++
				}
				v, ok = argument{span{a.from + n, a.to}, a.text[n:]}, true
			}
			if !ok {
				continue
			}
			k := strings.IndexByte(v.text, ':')
			if k < 0 {
				k = strings.IndexAny(v.text, "%,")
			}
			if k >= 0 {
				any = f.password(span{v.from + k + 1, v.to}) || any
			}
		}
	}
	for i, a := range args {
		for _, flag := range p["header"] {
			if rest, ok := strings.CutPrefix(a.text, flag); ok && rest != "" {
				any = f.headerValue(span{a.from + len(flag), a.to}) || any
			} else if ok && i+1 < len(args) {
				any = f.headerValue(args[i+1].span) || any
			}
		}
	}
	for _, v := range p["nth"] { // verb:number of the argument
		verb, number, _ := strings.Cut(v, ":")
		k, _ := strconv.Atoi(number)
		if words := plainArguments(args); k < len(words) && (verb == "" || words[0].text == verb) && isMade(words[k].text) {
			any = f.password(words[k].span) || any
		}
	}
	for _, a := range args {
		if _, slash := p["slash"]; slash { // user/password@host
			any = f.behindSlash(a) || any
		}
	}
	if _, made := p["made"]; made && len(bare) > 0 {
		last := bare[len(bare)-1]
		if user, rest, ok := strings.Cut(last.text, ":"); ok && simpleWord(user) {
			last.text, last.from = rest, last.to-len(rest)
		}
		any = isMade(last.text) && f.password(last.span) || any
	}
	if _, last := p["last"]; last && len(bare) > min(1, len(p["verbs"])) {
		any = f.password(bare[len(bare)-1].span) || any
	}
	return any
}

// plainArguments are those that are no flags.
func plainArguments(args []argument) (out []argument) {
	for _, a := range args {
		if a.text[0] != '-' && (a.text[0] != '/' || strings.HasPrefix(a.text, "//")) {
			out = append(out, a)
		}
	}
	return out
}

// behindSlash notes the password of user/password@host.
func (f *finder) behindSlash(a argument) bool {
	text := a.text
	if k := strings.IndexByte(text, '='); k >= 0 && k < strings.IndexByte(text, '/') {
		text = text[k+1:]
	}
	user, rest, ok := strings.Cut(text, "/")
	if !ok || !simpleWord(user) || rest == "" || rest[0] == '/' {
		return false
	}
	from := a.to - len(rest)
	rest, _, _ = strings.Cut(rest, " ")
	if k := strings.LastIndexByte(rest, '@'); k > 0 {
		rest = rest[:k]
	}
	return isMade(rest) && f.password(span{from, from + len(rest)})
}

// isMade reports a text that was made or chosen as a secret.
func isMade(s string) bool {
	return shapeOf(s) >= worded || isJoined(s) || isUUID(s) || len(s) >= 20 && isHex(s)
}

// headerValue notes the value of a header that is named as a key or token.
func (f *finder) headerValue(at span) bool {
	name, value, ok := strings.Cut(f.s[at.from:at.to], ":")
	name = strings.Trim(name, "=\"'` \\")
	if !ok || len(name) > maxName || weigh(name) == noSecret {
		return false
	}
	at.from = at.to - len(value)
	if k := strings.LastIndexByte(strings.TrimRight(value, " \"'\\"), ' '); k >= 0 {
		at.from += k + 1
	}
	if at.to-at.from < 8 || entropy(f.s[at.from:at.to]) < 2.5 {
		return false
	}
	if text := f.s[at.from:at.to]; strings.Contains(text, "$") || strings.ContainsAny(text, "<{") || placeholder(strings.TrimLeft(text, "@")) {
		return false
	}
	f.found = append(f.found, at)
	return true
}

// flagWords begin as a flag does that a password is joined to.
var flagWords = wordSet("-port -print -protocol")

func (f *finder) password(at span) bool {
	at.from = skip(f.s, at.from, at.to-at.from, quoteByte)
	at.to = skipBack(f.s, at.to, at.from, quoteOrSlash)
	text := f.s[at.from:at.to]
	if low := strings.ToLower(text); namesSecret(low) || idleValues[low] {
		return false
	}
	if len(text) < 3 || text[0] != ':' && (placeholder(text) || variable().MatchString(text)) || isReference(text) || strings.HasPrefix(text, "$") {
		return false
	}
	f.found = append(f.found, at)
	return true
}

var quoteOrSlash = classOf("[`'\"\\\\]")

// arguments splits a command, or a list of texts that make one, up to its end.
func (f *finder) arguments(from int) ([]argument, int) {
	s := f.s
	end := min(len(s), from+maxCommand)
	var out []argument
	i := from
	for i < end && len(out) < 40 {
		switch c := s[i]; {
		case c == '\n' && skip(s, i+1, 20, blank) > i+1 && strings.HasPrefix(s[skip(s, i+1, 20, blank):], "-"):
			i++ // a flag in the next line
		case c == '\n' || c == '|' || c == ';' || c == '&' && i+1 < end && s[i+1] == '&' || c == ']':
			return out, i
		case c == '\\' && i+1 < end && s[i+1] == '\n':
			i += 2
		case c == '\\' && i+1 < end && s[i+1] == 'n':
			return out, i
		case c == ' ' || c == '\t' || c == ',' || c == '[' || c == '\\':
			i++
		case quoteByte.has(c):
			k := i + 1
			for k < end && s[k] != c && s[k] != '\n' {
				k++
			}
			if k > i+1 {
				out = append(out, argument{span{i + 1, k}, s[i+1 : k]})
			}
			i = k + 1
		default:
			k := i
			for k < end && s[k] != ' ' && s[k] != '\t' && s[k] != '\n' && s[k] != '|' && s[k] != ';' && s[k] != '\\' && (s[k] != '"' || k > i && f.quotedInside(i, k)) {
				if quoteByte.has(s[k]) { // -p'some thing'
					q := s[k]
					for k++; k < end && s[k] != q && s[k] != '\n'; k++ {
					}
				}
				if k < end {
					k++
				}
			}
			k = min(k, end)
			out = append(out, argument{span{i, k}, s[i:k]})
			i = max(k, i+1)
		}
	}
	return out, i
}

// quotedInside reports a quote that begins within an argument.
func (f *finder) quotedInside(i, k int) bool {
	return k > i && (f.s[i] == '-' || f.s[k-1] == '=' || f.s[k-1] == ':')
}

// readers are parts of commands that read a secret from a pipe or a here-string.
var readers = newWordFinder([]string{
	"sudo -s", "su ", "passwd", "password", "passphrase", "pass ", "login", "kinit", "openconnect", "cryptsetup", "gpg", "openssl", "secret", "token", "credential", "keyring", "keychain", "vault", "auth", "wallet", "unlock", "decrypt", "smb",
	"vnc", "ldap", "age ", "pinentry", "luks", "env add", "config set", "api_key", "apikey", "api-key", "_key", "pw", "vpn", "ansible-vault", "ykman", "security ", "kdestroy", "rclone", "restic", "borg", "kwallet", "kdbx", "htpasswd", "read -s",
})

// hereString finds what a command reads that a secret is written to: cmd <<< secret.
func (f *finder) hereString(from, to int) {
	if from < f.state.here {
		return
	}
	f.state.here = to + 16
	line := f.back(from, '\n', maxCommand/2)
	f.work += 2 * (from - line)
	if !readers.matches(f.bytes[line:from]) {
		return
	}
	at := skip(f.s, to, 2, blank)
	if strings.HasPrefix(f.s[at:], "$'") {
		at++
	}
	f.given(at)
}

// echo finds what is written to such a command: echo secret | cmd, <(echo secret).
func (f *finder) echo(from, to int) {
	if f.wordAt(from-1) || f.state.piped > from {
		return
	}
	s := f.s
	at := to
	for at+2 < len(s) && s[at] == '-' && letterClass.has(s[at+1]) { // -n, -e
		at = skip(s, skip(s, at+1, 3, letterClass), 2, blank)
	}
	if strings.HasPrefix(s[at:], `'%s`) || strings.HasPrefix(s[at:], `"%s`) {
		at = skip(s, at+3, 8, formatEnd)
	}
	end := f.ahead(to, '\n', maxCommand/2)
	f.work += 4 * (end - to)
	if from > 1 && (s[from-1] == '(' && s[from-2] == '<' || quoteByte.has(s[from-1])) { // of a command in quotes
		if line := f.back(from, '\n', maxCommand/2); readers.matches(f.bytes[line:from]) && (s[from-1] == '(' || strings.Contains(f.low[line:from], "command")) {
			f.given(at)
		}
		return
	}
	k := strings.IndexByte(s[to:end], '|')
	if k < 0 || k+1 < end-to && s[to+k+1] == '|' || !readers.matches(f.bytes[to+k:end]) {
		return
	}
	f.given(at)
}

var formatEnd = classOf(`[\\n'" \t]`)

// given notes the argument at a place as a password.
func (f *finder) given(at int) {
	args := f.first(at)
	if len(args) == 0 {
		return
	}
	a := args[0]
	if k := strings.LastIndexByte(a.text, ':'); k > 0 && simpleWord(a.text[:k]) && k+4 < len(a.text) { // user:password
		a.from += k + 1
		a.text = a.text[k+1:]
	}
	a.text = strings.TrimRight(a.text, ")\"'")
	if m := mixOf(a.text); len(a.text) < 6 || m.digits+m.signs == 0 || isPathLike(a.text) || strings.ContainsAny(a.text, "<>=") || strings.Count(a.text, " ") > 3 || strings.Contains(a.text, " ") && strings.Contains(a.text, "$") {
		return
	}
	f.password(span{a.from, a.from + len(a.text)})
}

// userAndPassword finds -p password behind -u user, whatever the program.
func (f *finder) userAndPassword(from, to int) {
	line := f.back(from, '\n', maxCommand/2)
	before := f.low[line:from]
	f.work += 2 * len(before)
	if !strings.Contains(before, " -u") && !strings.Contains(before, "--user") && !strings.Contains(before, " -l ") && !strings.Contains(before, "-uname") && !strings.Contains(before, "cn=") || strings.Contains(before, "mkdir") || strings.Contains(before, "mysql") || strings.Contains(before, "mariadb") {
		return
	}
	at := skip(f.s, to, 1, equals)
	for _, a := range f.first(at) {
		if (shapeOf(a.text) >= worded || isProper(a.text)) && !strings.Contains(a.text, "/") {
			f.password(a.span)
		}
	}
}

var equals = classOf(`[= ]`)

// first is the argument at a place, or none.
func (f *finder) first(at int) []argument {
	s := f.s
	if at >= len(s) {
		return nil
	}
	v := span{at, at}
	end := min(len(s), at+maxName*2)
	if quoteByte.has(s[at]) {
		v.from++
		for v.to = v.from; v.to < end && s[v.to] != s[at] && s[v.to] != '\n'; v.to++ {
		}
	} else {
		v.to = skip(s, at, end-at, argumentByte)
	}
	f.work += v.to - at
	if v.from == v.to {
		return nil
	}
	return []argument{{v, s[v.from:v.to]}}
}

var argumentByte = classOf("[^\\s|;\"'`\\\\]")

// sent finds what a script types at a prompt for a password.
func (f *finder) sent(from, to int) {
	before := f.low[max(0, from-readBefore):from]
	f.work += len(before) + maxName
	if !strings.Contains(before, "assword") && !strings.Contains(before, "assphrase") && !strings.Contains(before, "pin") {
		behind := f.low[to:f.ahead(to, '\n', readBefore)]
		if !strings.Contains(behind, "assword") {
			return
		}
	}
	if end := skip(f.s, to, maxName, typedByte); end-to >= 4 {
		f.password(span{to, end})
	}
}

var typedByte = classOf("[^\"\\\\\n$]")

// userFlag finds -u user:password, whatever the program.
func (f *finder) userFlag(_, to int) {
	for _, a := range f.first(to) {
		user, secret, ok := strings.Cut(a.text, ":")
		f.work += 4 * len(a.text)
		if ok && simpleWord(user) && isMade(secret) {
			f.password(span{a.to - len(secret), a.to})
		}
	}
}

// valueFlag finds the value of a flag of a command that has a word for a secret.
func (f *finder) valueFlag(from, to int) {
	if from < f.state.flag {
		return
	}
	f.state.flag = to + 16
	line := f.back(from, '\n', maxCommand/2)
	f.work += 2 * (from - line)
	if readers.matches(f.bytes[line:from]) {
		f.given(to)
	}
}

// besideUser finds the password beside the name of a user: jdbc:oracle:thin:jo/secret@host,
// /user:jo secret.
func (f *finder) besideUser(_, to int) {
	args, _ := f.arguments(to)
	f.work += 2 * maxCommand
	switch {
	case len(args) == 0:
	case f.behindSlash(args[0]):
	case len(args) > 1 && f.s[to-len("/user:")] == '/' && isMade(args[1].text):
		f.password(args[1].span)
	}
}

// updated finds the value that a statement sets where a name is that of a secret.
func (f *finder) updated(from, to int) {
	if from < f.state.updated {
		return
	}
	f.state.updated = to + readAgain
	end, line := f.ahead(to, '\n', readBefore), f.back(from, '\n', readBefore)
	f.work += 2 * (end - line)
	named, set := f.literals(to, end), strings.Index(f.low[line:from], "set ")
	if set < 0 || len(named) != 1 || weigh(f.s[named[0].from:named[0].to]) < medium {
		return
	}
	if values := f.literals(line+set, from); len(values) == 1 {
		f.password(values[0])
	}
}

// below finds a secret that has the line behind the name of it for itself: "Your new token:".
func (f *finder) below(to int) {
	s := f.s
	end := f.ahead(to, '\n', maxName)
	if end >= len(s) || end == to || strings.TrimRight(s[to:end], " \r")[max(0, len(strings.TrimRight(s[to:end], " \r"))-1):] != ":" || strings.ContainsAny(s[to:end], "{}<>[]=\"") {
		return
	}
	from := skip(s, end, 12, anySpace)
	v := span{from, skip(s, from, maxName*2, tokenStart)}
	f.work += v.to - end
	if k := skip(s, v.to, 4, blank); v.from == v.to || k < len(s) && s[k] != '\n' && s[k] != '\r' {
		return
	}
	if sh := shapeOf(s[v.from:v.to]); sh == opaque || sh > numbered || sh == numbered && digitsOf(s[v.from:v.to]) > 1 {
		f.accept(v)
	}
}
