package sanitize

import (
	"maps"
	"slices"
	"strings"

	"compactd/internal/lazyregexp"
)

// handled are rules of gitleaks that functions here stand in for: they look as far
// as a text goes, at every place again.
var handled = map[string]bool{
	"curl-auth-header": true, "curl-auth-user": true, // header, command
	"private-key":              true, // pem
	"sourcegraph-access-token": true, // digests, with a bound between the word and the token
}

// forms are secrets that are known by what stands around them, other than a name.
func forms() []ownUse {
	return []ownUse{
		{[]string{"://"}, (*finder).url},
		{[]string{"authorization", "x-auth", "x-api", "api-key:", "x-token", "x-access", "x-amz-security-token", "x-goog-", "private-token", "x-vault", "x-csrf"}, (*finder).header},
		{[]string{"cookie:", `cookie"`, "cookie'", "--cookie", "cookies:"}, (*finder).cookies},
		{[]string{"bearer ", "basic ", "token ", "ssws ", "apikey "}, (*finder).scheme},
		{[]string{"private key"}, (*finder).pemHead},
		{[]string{"-----end"}, (*finder).pemTail},
		{[]string{"private-lines:"}, (*finder).puttyKey},
		{[]string{"login "}, (*finder).netrc},
		{[]string{":5432:", ":5433:", ":5434:", ":6432:", ":26257:", ":3306:", ":1433:", ":1521:", ":27017:", ":6379:", ":*:"}, (*finder).pgpass},
		{[]string{"sourcegraph"}, (*finder).digests},
		{slices.Collect(maps.Keys(programs)), (*finder).command},
		{[]string{"chpasswd", "sudo -s", "password-stdin", "passwd --stdin"}, (*finder).piped},
		{[]string{"pass:", "identified by", "identified with", "otpauth://"}, (*finder).marked},
	}
}

// url finds scheme://user:password@host, and scheme://token@host.
func (f *finder) url(from, to int) {
	s := f.s
	at, colon := -1, -1
	end := to
	for end < min(len(s), to+400) && !lineEnds.has(s[end]) && s[end] != '/' {
		switch {
		case s[end] == '@':
			at = end
		case s[end] == ':' && colon < 0 && at < 0:
			colon = end
		}
		end++
	}
	f.work += end - from
	v := span{colon + 1, at}
	if colon < 0 {
		v.from = to
	}
	if at < 0 || v.from >= at {
		return
	}
	text := s[v.from:v.to]
	f.work += 4 * len(text)
	if strings.IndexByte("$%{<[*:", text[0]) >= 0 && (variable().MatchString(text) || text[0] == '*' || strings.HasPrefix(text, "[secret]")) {
		return
	}
	if colon < 0 && (len(text) < 12 || mixOf(text).digits < 2 || entropy(text) < 3 || wordsOnly(text)) {
		return
	}
	if low := strings.ToLower(text); colon >= 0 && (nouns[low] != noSecret || placeholder(text) && !strings.ContainsAny(text, "0123456789")) {
		return
	}
	f.found = append(f.found, v)
}

// schemes stand before the credentials of a header.
var schemes = wordSet(`basic bearer token digest apikey api-key key negotiate ntlm hawk ssws dpop bot aws4-hmac-sha256 googlelogin oauth jwt goog4-rsa-sha256 sharedkey sharedkeylite sharedaccesssignature client genie-key
	splunk snowflake mac hoba mutual vapid privatetoken access-token x-token user user-token bearertoken pass zoho-oauthtoken zabbix telegram`)

// header finds the credentials of a header.
func (f *finder) header(from, to int) {
	if from < f.state.header {
		return
	}
	s := f.s
	end := skip(s, to, 40, identTail)
	name := f.low[from:end]
	if strings.HasPrefix(name, "authorization_") {
		return
	}
	i := skip(s, end, 10, headerClose)
	closed := i > end
	i = skip(s, i, 4, blank)
	if i >= len(s) || s[i] != ':' && s[i] != '=' && s[i] != ',' {
		return
	}
	if s[i] == ',' && !closed {
		return
	}
	i++
	if i < len(s) && (s[i] == '>' || s[i] == '=') {
		i++
	}
	i = skip(s, i, 4, blank)
	slashes := 0
	for i < min(len(s), end+24) && (s[i] == '\\' || quoteByte.has(s[i]) || s[i] == '[' || (s[i] == 'f' || s[i] == 'b') && i+1 < len(s) && quoteByte.has(s[i+1])) {
		i++
		slashes++
	}
	stop := skip(s, i, maxValue, headerByte)
	f.work += stop - from
	f.state.header = stop
	if stop < len(s) && s[stop] == '"' && strings.Contains(s[i:stop], "=") && slashes == 0 { // parameters in quotes
		stop = f.ahead(i, '\n', maxValue)
	}
	f.credentials(i, stop, strings.HasPrefix(name, "authorization") || strings.HasPrefix(name, "x-auth"))
}

var (
	headerClose = classOf("[\\\\`'\"\\]]")
	headerByte  = classOf("[^\n\r`'\"\\\\<>]")
)

// credentials notes those between two places, behind the word for their scheme.
func (f *finder) credentials(from, to int, schemed bool) {
	s := strings.TrimRight(f.s[from:to], " \t,;)}]")
	word, rest, ok := strings.Cut(s, " ")
	hasScheme := ok && (schemes[strings.ToLower(strings.TrimSuffix(word, ":"))] || schemed && strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz-") == "" && len(word) < 20)
	if hasScheme {
		from += len(word) + 1
		from += len(rest) - len(strings.TrimLeft(rest, " "))
		s = strings.TrimLeft(rest, " ")
		if strings.Contains(s, "=") && strings.ContainsAny(s, ",") || strings.HasPrefix(strings.ToLower(word), "aws4") {
			f.parameters(from, s)
			return
		}
	}
	v, _, more := strings.Cut(s, " ")
	if more && !hasScheme || len(v) < 6 || placeholder(v) || variable().MatchString(v) {
		return
	}
	low := strings.ToLower(v)
	m := mixOf(v)
	if idleValues[low] || schemes[low] || m.digits == 0 && (!hasScheme || len(v) < 12 || m.small == len(v) && !isLogin(v)) && !(len(v) >= 20 && entropy(v) > 3.5) || strings.ContainsAny(v, "(){}$") {
		if !(hasScheme && isLogin(v)) {
			return
		}
	}
	f.found = append(f.found, span{from, from + len(v)})
}

var parameter = lazyregexp.New(`(?i)\b(?:signature|response|nonce|cnonce|mac|hash|token|password|oauth_token|oauth_signature|auth|credential|secret|sig|id)="?([^",\s]{8,})`)

// parameters notes the values of name="value", … that hold a secret.
func (f *finder) parameters(from int, s string) {
	f.work += 4 * len(s)
	for _, m := range parameter().FindAllStringSubmatchIndex(s, 16) {
		if v := s[m[2]:m[3]]; !placeholder(v) && mixOf(v).digits > 0 {
			f.found = append(f.found, span{from + m[2], from + m[3]})
		}
	}
}

// scheme finds credentials behind the word for their scheme.
func (f *finder) scheme(from, to int) {
	if f.wordAt(from - 1) {
		return
	}
	i := skip(f.s, to, 4, blank)
	end := skip(f.s, i, 4<<10, tokenClass)
	f.work += end - i
	v := f.s[i:end]
	least := 16
	if f.low[from:to] == "token " || f.low[from:to] == "apikey " {
		least = 20
	}
	if len(v) < least || mixOf(v[:min(len(v), maxRead)]).digits == 0 && !(f.low[from:to] == "basic " && isLogin(v)) || placeholder(v[:min(len(v), maxRead)]) || isPathLike(v) || wordsOnly(v) || dashedWords(v) {
		return
	}
	if least == 20 && (isHash(v) && len(v) < 32 || entropy(v[:min(len(v), maxRead)]) < 3 || isUUID(v)) {
		return
	}
	f.found = append(f.found, span{i, end})
}

var tokenClass = classOf(`[A-Za-z0-9._~+/=-]`)

// harmlessCookies are names of cookies that identify no user.
var harmlessCookies = wordSet(`path domain expires max-age samesite secure httponly priority partitioned version comment theme lang language locale tz timezone consent cookieconsent currency country region ga gid fbp`)

// cookies finds the values of cookies.
func (f *finder) cookies(from, to int) {
	if from < f.state.header {
		return
	}
	s := f.s
	i := skip(s, to, 16, beforeCookies)
	end := i
	for end < min(len(s), i+2*maxValue) && s[end] != '\n' && s[end] != '\'' && s[end] != '\\' && (s[end] != '"' || end > 0 && s[end-1] == '=') {
		end++
	}
	f.work += 2 * (end - i)
	f.state.header = end
	for i < end {
		next := i + strings.IndexByte(s[i:end]+";", ';')
		if sign := strings.IndexByte(s[i:next], '='); sign > 0 {
			name := strings.ToLower(strings.TrimLeft(s[i:i+sign], " _"))
			v := span{i + sign + 1, next}
			if k := strings.IndexAny(s[v.from:v.to], " ,\""); k > 0 {
				v.to = v.from + k
			}
			f.cookie(name, v)
		}
		i = next + 1
	}
}

var beforeCookies = classOf("[ \\t:=,\\[\\\\\"'`]")

// cookie checks the value of one.
func (f *finder) cookie(name string, v span) {
	for v.from < v.to && f.s[v.from] == '"' {
		v.from++
	}
	text := f.s[v.from:v.to]
	if len(text) < 6 || len(name) > maxName || harmlessCookies[name] {
		return
	}
	text = text[:min(len(text), maxRead)]
	f.work += 2 * len(text)
	x := mixOf(text)
	if x.digits == 0 && len(text) < 16 || x.letters == 0 && len(text) < 12 || wordsOnly(text) || placeholder(text) || strings.ContainsAny(text, "{$(") {
		return
	}
	f.found = append(f.found, v)
}

var netrcLogin = lazyregexp.New(`(?i)^login\s{1,8}\S{1,128}\s{1,20}password\s{1,8}(\S{3,256})`)

// netrc finds login … password … without signs.
func (f *finder) netrc(from, _ int) {
	f.work += 32
	if !strings.Contains(f.low[from:min(len(f.s), from+160)], "password") {
		return
	}
	if m := netrcLogin().FindStringSubmatchIndex(f.s[from:min(len(f.s), from+420)]); m != nil {
		if v := f.s[from+m[2] : from+m[3]]; !placeholder(v) && strings.IndexByte("=:", v[0]) < 0 {
			f.found = append(f.found, span{from + m[2], from + m[3]})
		}
	}
}

var pgpassLine = lazyregexp.New(`^\s*(?:[A-Za-z*][\w.*-]*|\d+\.\d+\.\d+\.\d+):(?:\d{2,5}|\*):([\w*.-]+):([\w*.@-]+):((?:[^\s:\\"'` + "`" + `]|\\.){3,128})\s*$`)

// pgpass finds host:port:database:user:password.
func (f *finder) pgpass(from, to int) {
	line, end := f.line(to)
	if end-line > 360 || f.state.pgpass == end {
		return
	}
	f.state.pgpass = end
	f.work += end - line
	m := pgpassLine().FindStringSubmatchIndex(f.s[line:end])
	if m == nil || placeholder(f.s[line+m[6]:line+m[7]]) || strings.Trim(f.s[line+m[4]:line+m[5]], "0123456789") == "" {
		return
	}
	f.found = append(f.found, span{line + m[6], line + m[7]})
}

// digests finds the tokens of 40 digits that stand near the word for their service.
func (f *finder) digests(_, at int) {
	end := min(len(f.s), at+maxNear)
	run := 0
	for i := max(at, f.state.digest); i <= end; i++ {
		if i < end && hexByte.has(f.s[i]) {
			run++
			continue
		}
		if run == 40 && !f.wordAt(i) && !f.wordAt(i-41) {
			f.found = append(f.found, span{i - 40, i})
		}
		run = 0
	}
	f.work += max(0, end-f.state.digest)
	f.state.digest = max(f.state.digest, end)
}

// marked finds values behind marks that are no names.
func (f *finder) marked(from, to int) {
	at := to
	switch f.low[from:to] {
	case "pass:":
		if !strings.Contains(f.low[max(0, from-12):from], "pass") {
			return // neither -passin pass:x nor -passout pass:x
		}
		if strings.HasPrefix(f.low[to:], "pass:") {
			return // the next one is looked at by itself
		}
	case "otpauth://":
		k := strings.Index(f.low[from:min(len(f.s), from+130)], "secret=")
		if k < 0 {
			return
		}
		at = from + k + len("secret=")
	case "identified with":
		k := strings.Index(f.low[to:min(len(f.s), to+48)], " by ")
		if k < 0 {
			return
		}
		at = to + k + len(" by ")
	}
	f.work += 40
	at = skip(f.s, at, 4, quoteOrSpace)
	if strings.HasPrefix(f.low[at:], "password ") {
		at = skip(f.s, at+len("password "), 4, quoteOrSpace)
	}
	end := skip(f.s, at, 128, codeEnds.not())
	f.work += end - at
	if text := f.s[at:end]; len(text) < 4 || placeholder(text) || idleValues[strings.ToLower(text)] {
		return
	}
	f.found = append(f.found, span{at, end})
}

// piped finds what is written to a program that reads a password.
func (f *finder) piped(from, _ int) {
	line := max(f.back(from, '\n', 300), f.state.piped)
	f.state.piped = from
	text := f.s[line:from]
	f.work += 2 * len(text)
	i := strings.LastIndexAny(text, "|<")
	if i < 0 {
		return
	}
	m := echoed().FindStringSubmatchIndex(text[:i])
	if m == nil {
		return
	}
	v := span{line + m[2], line + m[3]}
	if strings.HasPrefix(f.low[from:], "chpasswd") {
		if k := strings.LastIndexByte(f.s[v.from:v.to], ':'); k >= 0 {
			v.from += k + 1
		}
	}
	if v.to-v.from >= 4 && !placeholder(f.s[v.from:v.to]) {
		f.found = append(f.found, v)
	}
}

var echoed = lazyregexp.New(`(?:echo|printf|print)\s+(?:-[a-zA-Z]+\s+)*(?:['"]%s(?:\\n)?['"]\s+)?["']?([^"'|]+?)(?:\\n)?["']?\s*$`)

// formField finds a password that is sent in a form of parts.
func (f *finder) formField(from, to int) {
	end := skip(f.s, to, maxName, identByte)
	f.work += end - from
	if end >= len(f.s) || f.s[end] != '"' || weigh(f.s[to:end]) < medium {
		return
	}
	at := end + 1
	for range 2 {
		n := lineBreak(f.s[at:])
		if n == 0 {
			return
		}
		at += n
	}
	if lineBreak(f.s[at:]) == 0 {
		f.password(span{at, skip(f.s, at, maxRead, fieldByte)})
	}
}

var fieldByte = classOf(`[^\r\n\\]`)

// lineBreak is the length of the line break that a text begins with, 0 for none.
func lineBreak(s string) int {
	for _, b := range []string{"\r\n", "\n", `\r\n`, `\n`} {
		if strings.HasPrefix(s, b) {
			return len(b)
		}
	}
	return 0
}

// dsn finds user:password@tcp(host).
func (f *finder) dsn(from, _ int) {
	start := skipBack(f.s, from, max(0, from-maxName), lineEnds.not())
	f.work += from - start
	if k := strings.IndexByte(f.s[start:from], ':'); k > 0 {
		f.password(span{start + k + 1, from})
	}
}

// newValue finds a password on the line behind the message that it was made.
func (f *finder) newValue(from, to int) {
	before := f.low[max(0, from-readBefore):to]
	f.work += 2 * len(before)
	if f.low[to-1] != ':' { // password is generated for root@localhost: X
		k := strings.Index(f.low[to:f.ahead(to, '\n', maxName)], ": ")
		if to += k + 1; k < 0 {
			return
		}
	}
	if !strings.Contains(before, "password") && !strings.Contains(before, "secret") && !strings.Contains(before, "token") && !strings.Contains(before, "key") {
		return
	}
	from = skip(f.s, to, 3, blank)
	if to = skip(f.s, from, maxName, tokenStart); to-from >= 6 && digitsOf(f.s[from:to]) > 0 && !isHash(f.s[from:to]) {
		f.password(span{from, to})
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

// userInfo finds user:password@host without a scheme before it.
func (f *finder) userInfo(from, to int) {
	s := f.s
	if to >= len(s) || !wordClass.has(s[to]) || strings.HasPrefix(s[to:], "sha") {
		return
	}
	start := skipBack(s, from, max(0, from-maxName), infoByte)
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

// link finds the part of a URL that lets in who has it.
func (f *finder) link(from, to int) {
	begin := skipBack(f.s, from, max(0, from-readBefore), lineEnds.not())
	end := skip(f.s, to, maxRead, linkByte)
	text := f.s[to:end]
	f.work += from - begin + 4*len(text)
	if !strings.Contains(f.s[begin:from], "://") && begin == from || len(text) < 20 || placeholder(text) || isUUID(text) && f.s[from] == '/' {
		return
	}
	if isHex(text) && len(text) >= 32 || shapeOf(text) == random {
		f.accept(span{to, end})
	}
}

var linkByte = classOf(`[A-Za-z0-9_.~-]`)
