package sanitize

import (
	"strings"
)

// readers are parts of commands that read a secret from a pipe or a here-string.
var readers = newWordFinder([]string{
	"sudo -s", "su ", "passwd", "password", "passphrase", "pass ", "login", "kinit", "openconnect", "cryptsetup", "gpg", "openssl", "secret", "token", "credential", "keyring", "keychain", "vault", "auth", "wallet", "unlock", "decrypt", "smb",
	"vnc", "ldap", "age ", "pinentry", "luks", "env add", "config set", "api_key", "apikey", "api-key", "_key", "pw", "vpn", "ansible-vault", "ykman", "security ", "kdestroy", "rclone", "restic", "borg", "kwallet", "kdbx", "htpasswd", "read -s",
})

func reads(low string) (found bool) {
	readers.walk([]byte(low), func(int, int, int) bool { found = true; return false })
	return found
}

// hereString finds what a command reads that a secret is written to: cmd <<< secret.
func (f *finder) hereString(from, to int) {
	if from < f.state.here {
		return
	}
	f.state.here = to + 16
	line := f.back(from, '\n', maxCommand/2)
	f.work += 2 * (from - line)
	if f.tokens || !reads(f.low[line:from]) {
		return
	}
	f.given(skip(f.s, to, 2, blank))
}

// echo finds what is written to such a command: echo secret | cmd, <(echo secret).
func (f *finder) echo(from, to int) {
	if f.tokens || f.wordAt(from-1) || f.state.piped > from {
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
	if from > 1 && s[from-1] == '(' && s[from-2] == '<' {
		if line := f.back(from, '\n', maxCommand/2); reads(f.low[line:from]) {
			f.given(at)
		}
		return
	}
	k := strings.IndexByte(s[to:end], '|')
	if k < 0 || k+1 < end-to && s[to+k+1] == '|' || !reads(f.low[to+k:end]) {
		return
	}
	f.given(at)
}

var formatEnd = classOf(`[\\n'" \t]`)

// given notes the argument at a place as a password.
func (f *finder) given(at int) {
	args, _ := f.arguments(at)
	if len(args) == 0 || args[0].from > at+2 {
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
	if f.tokens || !strings.Contains(before, " -u") && !strings.Contains(before, "--user") && !strings.Contains(before, " -l ") && !strings.Contains(before, "-uname") || strings.Contains(before, "mkdir") || strings.Contains(before, "mysql") || strings.Contains(before, "mariadb") {
		return
	}
	at := skip(f.s, to, 1, equals)
	for _, a := range f.first(at) {
		if shapeOf(a.text) >= numbered && !strings.Contains(a.text, "/") {
			f.password(a.span)
		}
	}
}

var equals = classOf(`[= ]`)

// first is the argument at a place, or none.
func (f *finder) first(at int) []argument {
	end := min(len(f.s), at+maxName)
	if k := strings.IndexAny(f.s[at:end], " \t\n|;"); k >= 0 && !quoteByte.has(f.s[at]) {
		end = at + k
	}
	if at >= end {
		return nil
	}
	args, _ := f.arguments(at)
	return args[:min(len(args), 1)]
}

// sent finds what a script types where it was asked for a password.
func (f *finder) sent(from, to int) {
	before := f.low[max(0, from-readBefore):from]
	f.work += len(before) + maxName
	if !strings.Contains(before, "assword") && !strings.Contains(before, "assphrase") && !strings.Contains(before, "pin") {
		behind := f.low[to:f.ahead(to, '\n', readBefore)]
		if !strings.Contains(behind, "assword") {
			return
		}
	}
	v := span{to, to}
	for v.to < min(len(f.s), to+maxName) && strings.IndexByte("\"\\\n$", f.s[v.to]) < 0 {
		v.to++
	}
	if v.to-v.from >= 4 {
		f.password(v)
	}
}

// formField finds a password that is sent in a form of parts.
func (f *finder) formField(from, to int) {
	end := to
	for end < min(len(f.s), to+maxName) && identByte.has(f.s[end]) {
		end++
	}
	f.work += end - from
	if end >= len(f.s) || f.s[end] != '"' || weigh(f.s[to:end]) < medium {
		return
	}
	at := end + 1
	for lines := 0; ; {
		switch {
		case strings.HasPrefix(f.s[at:], "\r\n"):
			at, lines = at+2, lines+1
		case strings.HasPrefix(f.s[at:], "\n"):
			at, lines = at+1, lines+1
		case strings.HasPrefix(f.s[at:], `\r\n`):
			at, lines = at+4, lines+1
		case strings.HasPrefix(f.s[at:], `\n`):
			at, lines = at+2, lines+1
		case lines == 2:
			v := span{at, at}
			for v.to < min(len(f.s), at+maxRead) && strings.IndexByte("\r\n\\", f.s[v.to]) < 0 {
				v.to++
			}
			f.password(v)
			return
		default:
			return
		}
		if lines > 2 {
			return
		}
	}
}

// dsn finds user:password@tcp(host).
func (f *finder) dsn(from, _ int) {
	start := from
	for start > max(0, from-maxName) && !lineEnds.has(f.s[start-1]) {
		start--
	}
	f.work += from - start
	if k := strings.IndexByte(f.s[start:from], ':'); k > 0 {
		f.password(span{start + k + 1, from})
	}
}

// newValue finds a password on the line behind the message that it was made.
func (f *finder) newValue(from, to int) {
	before := f.low[max(0, from-readBefore):from]
	f.work += len(before)
	if !strings.Contains(before, "password") && !strings.Contains(before, "secret") && !strings.Contains(before, "token") && !strings.Contains(before, "key") {
		return
	}
	for _, a := range f.first(skip(f.s, to, 3, blank)) {
		if len(a.text) >= 6 && mixOf(a.text).digits > 0 && !isHash(a.text) {
			f.password(a.span)
		}
	}
}

// webKey finds the private members of a key in JSON.
func (f *finder) webKey(from, to int) {
	begin, end := max(0, from-maxRead), min(len(f.s), to+4*maxRead)
	if from < f.state.webKey {
		return
	}
	f.state.webKey = end
	f.work += 4 * (end - begin)
	for _, m := range []string{`"d"`, `"k"`, `"p"`, `"q"`, `"dp"`, `"dq"`, `"qi"`} {
		for i := begin; i < end; {
			k := strings.Index(f.s[i:end], m)
			if k < 0 {
				break
			}
			i = skip(f.s, i+k+len(m), 6, quoteColon)
			v := span{i, skip(f.s, i, 2*maxValue, codedByte)}
			if v.to-v.from >= 20 {
				f.accept(v)
			}
			f.work += v.to - v.from
			i = max(i, v.to)
		}
	}
}

var quoteColon = classOf(`[": ]`)

// codes finds the codes that stand in for a second factor.
func (f *finder) codes(_, to int) {
	i := skip(f.s, to, 24, codeGap)
	f.work += 2 * maxRead
	for n := 0; n < 16 && i < min(len(f.s), to+maxRead); n++ {
		end, dashes, digits := i, 0, 0
		for end < min(len(f.s), i+32) && (wordClass.has(f.s[end]) || f.s[end] == '-') {
			if f.s[end] == '-' {
				dashes++
			} else if digitClass.has(f.s[end]) {
				digits++
			}
			end++
		}
		if end-i < 6 || dashes == 0 && digits < 2 || dashes > 5 {
			return
		}
		f.accept(span{i, end})
		if i = skip(f.s, end, 8, codeGap); i == end {
			return
		}
	}
}

var codeGap = classOf("[ \\t\\r\\n,:*•.\"'`\\[|-]")

// userFlag finds -u user:password, whatever the program.
func (f *finder) userFlag(_, to int) {
	if f.tokens {
		return
	}
	for _, a := range f.first(to) {
		user, secret, ok := strings.Cut(a.text, ":")
		f.work += 4 * len(a.text)
		if ok && simpleWord(user) && isMade(secret) {
			f.password(span{a.to - len(secret), a.to})
		}
	}
}

// userInfo finds user:password@host without a scheme before it.
func (f *finder) userInfo(from, to int) {
	s := f.s
	if f.tokens || to >= len(s) || !wordClass.has(s[to]) || strings.HasPrefix(s[to:], "sha") {
		return
	}
	start := from
	for start > max(0, from-maxName) && infoByte.has(s[start-1]) {
		start--
	}
	f.work += from - start + 2
	k := strings.LastIndexByte(s[start:from], ':')
	if k < 1 || !userByte.has(s[start+k-1]) {
		return
	}
	f.work += 4 * (from - start)
	if isMade(s[start+k+1 : from]) {
		f.password(span{start + k + 1, from})
	}
}

var infoByte = classOf(`[A-Za-z0-9_.!#$%^&*+=~?:-]`)

// wifi finds the password of a code that joins a network: WIFI:S:name;P:password;;
func (f *finder) wifi(_, to int) {
	end := f.ahead(to, '\n', maxName*2)
	k := strings.Index(f.s[max(0, to-1):end], ":P:")
	if m := strings.Index(f.s[to:end], ";P:"); m >= 0 {
		k = m + 1
	}
	if k < 0 {
		return
	}
	v := span{to + k + 2, to + k + 2}
	v.to += max(0, strings.IndexByte(f.s[v.from:end]+";", ';'))
	f.password(v)
}
