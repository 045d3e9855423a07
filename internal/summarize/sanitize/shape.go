package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// shape is the likeness of a text by itself to a chosen or generated secret.
type shape int

const (
	noShape  shape = iota
	hyphened       // words with signs between them, and a digit: what a name looks like too
	counted        // a number of 5 to 10 digits
	opaque         // digits of a digest or an id, which only a word can call a secret
	worded         // words with a sign between two, and a number: winter-yellow-92
	numbered       // a word with a number of one or two digits: db1, python3
	chosen         // a word with more digits or a sign: winter2024, pass!word
	mixed          // digits between letters, or letters with digits and signs: Tr0ub4dor&3
	random         // long, and without any order
)

// shapeOf weighs a text without white space. Names of files, hosts, versions, standards,
// digests and ids have no shape.
func shapeOf(s string) shape {
	n := len(s)
	if n < 5 || n > maxName*2 || placeholder(s) {
		return noShape
	}
	if skip(s, 0, 11, digitClass) == n {
		return counted
	}
	if letters := skip(s, 0, n, letterClass) == n; letters && n >= 10 && isTangled(s) {
		return opaque
	} else if n < 6 || letters || skip(s, 0, n, plainByte) == n {
		return noShape
	}
	if isPassphrase(s) {
		return worded
	}
	if isOpaque(s) {
		return opaque
	}
	if isHex(s) || isHash(s) || notChosen(s) {
		return noShape
	}
	m := mixOf(s)
	if m.letters == 0 || m.other > 3 || m.spaces > 0 {
		return noShape
	}
	if m.digits == 0 {
		if inner := strings.IndexAny(s[1:n-1], "!@#$%^&*?+"); inner >= 0 && m.letters > 3 && m.letters+m.signs == n && strings.Trim(s, "!#*?&+$") == s {
			if n >= 8 {
				return chosen
			}
		}
		return noShape
	}
	runs, inner, turns := orderOf(s)
	switch {
	case n >= 16 && m.digits >= 2 && m.letters >= 6 && entropy(s) > 3.3 && turns >= 6:
		return random
	case runs >= 2 && inner >= 1 && n >= 8, inner >= 1 && m.signs > 0 && m.letters > 2, inner >= 1 && m.digits >= 2 && letterClass.has(s[n-1]), n >= 8 && 3*turns >= n:
		return mixed
	case m.digits >= 3, m.signs > 0, inner >= 1 && (m.small == m.letters || m.small == m.letters-1 && s[0] >= 'A' && s[0] <= 'Z'):
		return chosen
	}
	return numbered
}

// isTangled reports letters whose capitals begin no words.
func isTangled(s string) bool {
	_, _, turns := orderOf(s)
	return 3*turns >= len(s) && !camelWords(s)
}

// isOpaque reports a UUID, or 16 hexadecimal digits and more.
func isOpaque(s string) bool {
	return isUUID(s) || len(s) >= 16 && len(s) <= maxName && isHex(s) && strings.Trim(s, "0123456789") != "" && entropy(s) > 2.5
}

// plainByte is in words and names; a secret has others too.
var plainByte = classOf(`[A-Za-z_./:,;'()"-]`)

// orderOf counts runs of digits, those of them that stand between letters or signs, and how
// often small and large letters, digits and signs take turns.
func orderOf(s string) (runs, inner, turns int) {
	kind := func(c byte) int {
		switch {
		case digitClass.has(c):
			return 0
		case c >= 'a' && c <= 'z':
			return 1
		case c >= 'A' && c <= 'Z':
			return 2
		}
		return 3
	}
	for i := range len(s) {
		if i > 0 && kind(s[i]) != kind(s[i-1]) {
			turns++
		}
		if digitClass.has(s[i]) && (i == 0 || !digitClass.has(s[i-1])) {
			runs++
		}
		if i > 0 && digitClass.has(s[i-1]) && !digitClass.has(s[i]) && !digitClass.has(s[0]) {
			inner++
		}
	}
	return runs, inner, turns
}

// notChosen reports a text that only looks made up.
func notChosen(s string) bool {
	if strings.Contains(s, "%s") || strings.ContainsAny(s[:len(s)-1], ",=") || strings.Contains(s, "..") || holdsVariable(s) {
		return true
	}
	if i := strings.LastIndexByte(s, ':'); i > 0 && (isHex(strings.ReplaceAll(s, ":", "")) || skip(s, i+1, 5, digitClass) == len(s) && skip(s, 0, i, hostByte) == i) {
		return true // a fingerprint, or a host and its port
	}
	if n := skip(s, 0, len(s), digitClass); n > 0 && n < len(s) && s[n] == ':' {
		return true // the number of a line
	}
	if s[0] == '-' || s[0] == '.' || s[0] == '#' && isHex(s[1:]) || strings.ContainsAny(s, "(){}[]<>|\\;`\"'") || strings.Contains(s, "://") || strings.Contains(s, "::") || strings.Contains(s, "->") {
		return true
	}
	if isPathLike(s) || dashedWords(s) || wordsOnly(s) || strings.HasPrefix(s, "0x") || strings.Count(s, "/") > 1 {
		return true
	}
	if i := strings.IndexByte(s, '@'); i > 0 && strings.IndexByte(s[i:], '.') > 0 || i == 0 || i > 1 && skip(s, 0, i, pathByte) == i || i > 0 && isHash(s[i+1:]) {
		return true
	}
	low := strings.ToLower(s)
	if hasAny(low, technicalParts, strings.Contains) {
		return true
	}
	if strings.IndexByte(low, '.') >= 0 && namedParts(low, ".:/-_=,") || strings.IndexByte(low, '_') >= 0 && namedParts(low, "_.-:/=") || strings.IndexAny(low, "-:") > 0 && namedParts(low, "-:./=") {
		return true
	}
	word := low[:skip(low, 0, len(low), letterClass)]
	if technical[word] && word != low && len(low)-len(word) <= 5 || technical[low] {
		return true
	}
	return hasAny(low, idPrefixes, strings.HasPrefix) || measured(low)
}

var technicalParts = []string{"&lt", "&gt", "&amp", "&quot", "oauth2", "sha256", "base64", "utf8", "http2", "sha1", "md5", "i18n", "utf16", "x509", "sha512"}

var hostByte = classOf(`[A-Za-z0-9._-]`)

var pathByte = classOf(`[A-Za-z/._-]`)

// holdsVariable reports $name, ${name} or $(command) within a text.
func holdsVariable(s string) bool {
	i := strings.IndexByte(s, '$')
	return i >= 0 && i+1 < len(s) && (s[i+1] == '{' || s[i+1] == '(' || i == 0 && letterClass.has(s[1]) && !strings.ContainsAny(s[1:], "0123456789") || i > 0 && s[i-1] == '=')
}

// namedParts reports names and numbers with signs between them: v1.2.3-rc1, db-01.internal.
func namedParts(s, signs string) bool {
	parts := 0
	for p := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(signs, r) }) {
		parts++
		letters := skip(p, 0, len(p), letterClass)
		if k := skip(p, letters, 4, digitClass); k == len(p) {
			continue
		}
		if len(p) <= 3 {
			continue
		}
		digits := skip(p, 0, len(p), digitClass)
		if k := skip(p, digits, 12, letterClass); digits > 0 && skip(p, k, 3, digitClass) == len(p) {
			continue
		}
		return false
	}
	return parts > 1
}

// measured reports a number with its unit, or one that begins a name: 128k, 10ms, 64bit, 2fa, v1beta1.
func measured(low string) bool {
	digits := skip(low, 0, len(low), digitClass)
	if digits > 0 && len(low)-digits <= 4 {
		return skip(low, digits, len(low), letterClass) == len(low)
	}
	return low[0] == 'v' && len(low) > 1 && digitClass.has(low[1]) && len(low) < 10
}

// technical are names that have digits.
var technical = wordSet(`gpio sha md aes des utf base node nodejs python py go java jdk jre postgres postgresql pg mysql mariadb redis mongo http https ipv oauth ed rsa
	ecdsa secp pbkdf argon bcrypt scrypt win windows linux ubuntu debian alpine arm amd x86 cp iso rfc tls ssl ssh smtp pop imap ldap log utf8mb4 latin gcc clang
	php ruby perl rust swift kotlin vue angular react next webpack es ecmascript html css sql sqlite oracle db2 vp h264 mp jpeg base64 base32 hs rs ps hmac
	sha256 sha512 sha1 md5 crc xxhash murmur blake blake2b chacha poly1305 curve x25519 x509 pkcs p256 totp hotp k8s kubernetes i18n l10n a11y oauth2 openid
	keycloak sprint version release issue ticket bug pr step phase part chapter section page line row col column test case example task item level
	port eth wlan enp ens wg tun br vlan gpu cpu ec s3 t3 m5 us eu ap claude gpt gemini llama qwen mistral opus sonnet haiku
	error code http2 http1 web2 ie chrome firefox safari ios android iphone ntlmv mschapv v`)

// idPrefixes begin ids that open nothing.
var idPrefixes = []string{"toolu_", "call_", "msg_", "chatcmpl-", "resp_", "req_", "run_", "evt_", "cus_", "price_", "pk_", "prod_", "sub_", "ch_", "pi_", "rs_", "fc_", "thread_", "asst_", "file-", "i-0", "vpc-", "subnet-", "sg-", "sha256-", "sha512-", "sha384-", "cve-", "h1:", "arn:", "urn:", "x86_"}

// Bounds of the part of a line that is read around a word for a secret, in bytes.
const (
	readBefore    = 120
	readBehind    = 360
	readAgain     = 80 // at least this far behind the last such word, before it is read again
	maxCandidates = 24
)

// candidate is a text in a line that looks like a secret by itself.
type candidate struct {
	span
	shape  shape
	quoted bool
	head   int  // where the name of its user begins, or it itself
	paired bool // behind a user's name: bob:secret, bob / secret
}

// surroundings are the candidates of the part of a line that was read last.
type surroundings struct {
	from, to   int
	candidates []candidate
}

// around reads the line around a place.
func (f *finder) around(at int) []candidate {
	a := &f.state.around
	if at >= a.from && (at+readAgain <= a.to || a.to < len(f.s) && at <= a.to && f.s[a.to] == '\n') {
		return a.candidates
	}
	s := f.s
	from, to := max(0, at-readBefore), min(len(s), at+readBehind)
	if k := strings.LastIndexByte(s[from:at], '\n'); k >= 0 {
		from += k + 1
	}
	if k := strings.IndexByte(s[at:to], '\n'); k >= 0 {
		to = at + k
	}
	f.work += 6 * (to - from)
	*a = surroundings{from, to, a.candidates[:0]}
	for i := from; i < to && len(a.candidates) < maxCandidates; {
		i = f.token(i, to)
	}
	return a.candidates
}

// token adds the candidate that begins at a place, and returns what is behind it.
func (f *finder) token(i, to int) int {
	s := f.s
	if s[i] >= utf8.RuneSelf {
		r, w := utf8.DecodeRuneInString(s[i:])
		if unicode.IsLetter(r) && r < 0x2e80 && r > 0xbf && !unspaced(r) { // a word
			for i < to && (s[i] >= utf8.RuneSelf || wordClass.has(s[i])) {
				if r, w = utf8.DecodeRuneInString(s[i:]); r >= utf8.RuneSelf && !unicode.In(r, unicode.L, unicode.M) {
					break
				}
				i += w
			}
			return i
		}
		return i + w
	}
	if quoteByte.has(s[i]) {
		for k := i + 1; k < min(to, i+100) && s[k] != ' '; k++ {
			if s[k] == s[i] {
				f.candidate(span{i + 1, k}, true)
				return k + 1
			}
		}
		return i + 1
	}
	if s[i] == '\\' && i+1 < to && letterClass.has(s[i+1]) { // \n
		return i + 2
	}
	if !tokenStart.has(s[i]) {
		return i + 1
	}
	end := i
	for end < to && s[end] < utf8.RuneSelf && !tokenEnds.has(s[end]) {
		end++
	}
	if end < to && s[end] >= utf8.RuneSelf {
		if r, w := utf8.DecodeRuneInString(s[end:]); unicode.IsLetter(r) && r < 0x2e80 && !unspaced(r) {
			return end + w // the rest is a word, or a part of one
		}
	}
	f.candidate(span{i, end}, false)
	return max(end, i+1)
}

// unspaced reports letters of languages that write words without spaces, or a name and its
// ending with none.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Arabic, unicode.Hebrew, unicode.Devanagari)
}

var (
	tokenStart = classOf("[!-~]")
	tokenEnds  = classOf("[\\s\"'`,;()\\[\\]{}<>|\\\\]")
)

// candidate keeps a text if it has the shape of a secret: all of it, or what is behind the
// name of a user.
func (f *finder) candidate(at span, quoted bool) {
	s := f.s
	if !quoted {
		at.to = skipBack(s, at.to, at.from, candidateEnd)
	}
	at.from = skip(s, at.from, at.to-at.from, bold)
	if at.to-at.from < 5 {
		return
	}
	head := at.from
	paired := strings.HasSuffix(s[:at.from], " / ")
	if k := strings.IndexAny(s[at.from:at.to], ":/%"); k > 0 && k < 40 && simpleWord(s[at.from:at.from+k]) && shapeOf(s[at.from+k+1:at.to]) >= chosen && !strings.Contains(s[at.from:at.to], "://") {
		at.from += k + 1
		paired = true
	}
	f.work += 3 * (at.to - at.from)
	sh := shapeOf(s[at.from:at.to])
	if sh == noShape && isJoined(s[at.from:at.to]) {
		sh = hyphened
	}
	if sh > noShape {
		f.state.around.candidates = append(f.state.around.candidates, candidate{at, sh, quoted, head, paired})
	}
}

var candidateEnd = classOf(`[.:?*_]`)

// named reports a text that is a secret where words say so: a digest, an id, or a word with two digits.
func (c *candidate) named(s string) bool {
	return c.shape > counted && (c.shape != numbered || digitsOf(s[c.from:c.to]) > 1)
}

func simpleWord(s string) bool { return s != "" && skip(s, 0, len(s), userByte) == len(s) }

var userByte = classOf(`[A-Za-z0-9_.@+-]`)
