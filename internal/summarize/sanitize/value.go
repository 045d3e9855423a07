package sanitize

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
)

// The way a value follows its name limits what it can be.
type syntax int

const (
	inCode   syntax = iota // unquoted, where an expression may stand
	inProse                // behind "is"
	inQuotes               // a literal
	inLine                 // a setting: FOO=value, foo: value, <foo>value</foo>, --foo value, | foo | value |
)

// maxValue bounds a value; the rest of a longer one does not belong to it.
const maxValue = 2048

// maxRead bounds the read part of a value.
const maxRead = 256

// isSecret reports whether the value of a name is a secret, and not a word, an
// expression, or a place for one.
func isSecret(v string, w weight, how syntax) bool {
	v = v[:min(len(v), maxRead)]
	n := utf8.RuneCountInString(v)
	if n < 4 || placeholder(v) {
		return false
	}
	m := mixOf(v)
	if how != inQuotes && isCode(v, &m) || how == inQuotes && strings.Contains(v, "://") && !strings.Contains(v, "@") || isReference(v) {
		return false
	}
	if isPathLike(v) || strings.HasPrefix(v, "http://") || strings.HasPrefix(v, "https://") {
		return false
	}
	if how != inQuotes && strings.Count(v, ".") > 1 && strings.Trim(strings.ToLower(v), "abcdefghijklmnopqrstuvwxyz._") == "" {
		return false // a member
	}
	words := m.spaces > 0
	if words && (how != inQuotes && how != inLine || isProse(v)) {
		return false
	}
	low := strings.ToLower(v)
	if idleValues[strings.Trim(low, " :.,!?*")] || m.digits+m.signs == 0 && hasAny(low, idleStems, strings.HasPrefix) {
		return false
	}
	switch w {
	case strong:
		switch how {
		case inQuotes, inLine:
			return m.letters+m.digits+m.signs >= 4 && (m.signs > 0 || weigh(v) == noSecret) && !namesSecret(low)
		case inProse:
			return n >= 6 && (m.digits > 0 && m.letters > 0 && (!wordsOnly(v) || isPassphrase(v) || isJoined(v)) || m.signs > 0 && m.letters > 0)
		default:
			return n >= 6 && (m.digits > 0 && m.letters > 0 || m.signs > 0 && m.letters > 2) && (!wordsOnly(v) || isPassphrase(v) || isProper(v))
		}
	case medium:
		if words {
			return how == inQuotes && strings.Count(v, " ") >= 11 // a phrase of a wallet
		}
		if n < 8 || m.letters == 0 && n < 16 || wordsOnly(v) && (m.digits == 0 || how != inLine) {
			return false
		}
		if m.digits > 0 {
			return how == inQuotes || how == inLine || n >= 10
		}
		return (how == inQuotes || how == inLine) && (m.signs > 0 && n >= 10 || n >= 20 && entropy(v) > 3.2 && weigh(v) == noSecret || how == inLine && m.small == m.letters && m.letters == n && n >= 10 && weigh(v) == noSecret)
	case weak:
		return n >= 16 && m.digits > 1 && m.letters > 3 && !words && entropy(v) > 3.2 && !isHash(v) && !isUUID(v) && !wordsOnly(v) && !dashedWords(v)
	default:
		return false
	}
}

// namesSecret reports a value that only names what is wanted: Password, token.
func namesSecret(low string) bool {
	_, ok := nouns[low]
	return ok
}

// mix counts what a value is made of.
type mix struct{ letters, small, digits, signs, spaces, other int }

func mixOf(s string) (m mix) {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z':
			m.letters++
			m.small++
		case r >= 'A' && r <= 'Z', r >= 0x80:
			m.letters++
		case r >= '0' && r <= '9':
			m.digits++
		case r == ' ' || r == '\t':
			m.spaces++
		case r < 0x80 && signClass.has(byte(r)):
			m.signs++
		default:
			m.other++
		}
	}
	return m
}

var signClass = classOf(`[!@#$%^&*~?+=:]`)

// places are parts of texts in place of a secret, before it is set or after it was removed.
var places = []string{
	"your", "example", "placeholder", "changeme", "change-me", "change_me", "change me", "redacted", "removed", "xxxx", "****", "....", "…", "insert", "replace", "goes here",
	"_here", "-here", "secret]", "hidden>", "dummy", "sample", "omitted", "masked", "todo", "fixme", "not-set", "not_set", "notset", "undefined",
	"secrets.", "process.env", "os.environ", "getenv", "<password", "<token", "<secret", "{{", "bytes left out",
}

var placeFinder = newWordFinder(places)

var variable = lazyregexp.New(`^(?:` +
	`\$[A-Za-z_][\w.:]*|\$\{[^}]*\}?|\$\(.*|\$\{\{.*|%[A-Za-z_]\w*%|%\(?\w*\)?[sdvq]|@[A-Za-z_]+@|\{\{.*|\{[\w.:-]*\}?|<[^<>]*>?|\[[\w .:-]*\]?|__\w+__|#\{.*|:[a-z]\w*|\?|@\w+|&\w+|\*\w+` +
	`)["'\x60)\]};,]*$`)

// placeholder reports a text in place of a secret.
func placeholder(v string) bool {
	if strings.HasPrefix(v, "*") || strings.HasPrefix(v, "[secret]") {
		return true
	}
	var buf [maxRead]byte
	if placeFinder.matches(appendLowered(buf[:0], v)) {
		return true
	}
	if strings.IndexByte("$%@{<[_#:?&", v[0]) >= 0 && variable().MatchString(v) {
		return true
	}
	return sameBytes(v)
}

// sameBytes reports one or two characters again and again.
func sameBytes(v string) bool {
	var seen class
	n := 0
	for i := range len(v) {
		if !seen.has(v[i]) {
			seen.add(v[i])
			n++
		}
	}
	return n <= 2 && len(v) > 3
}

// isCode reports an expression: a call, a member, an index, an operator.
func isCode(v string, m *mix) bool {
	if strings.ContainsAny(v, "()") || strings.HasSuffix(v, "[") || strings.HasPrefix(v, "=") || strings.HasPrefix(v, "!") && m.digits == 0 || strings.HasPrefix(v, "://") {
		return true
	}
	if i := strings.IndexByte(v, '['); i > 0 && identifier(v[:i]) {
		return true
	}
	return strings.HasPrefix(v, "&") || strings.Contains(v, "::") || strings.Contains(v, "->") || strings.HasPrefix(v, "new ") || strings.HasPrefix(v, "await ")
}

// references are how settings name the place of a secret.
var references = []string{"arn:", "vault:", "ssm:", "op://", "file:", "secret://", "secretsmanager:", "projects/", "sops:", "env:", "ref+", "keyring:", "gcp:", "aws:", "kms:", "/run/", "/etc/", "/var/", "./", "../", "~/", "data:"}

func isReference(v string) bool {
	return hasAny(v, references, strings.HasPrefix) || strings.HasPrefix(v, "@") && strings.ContainsAny(v, "/.") && !strings.ContainsAny(v, "0123456789")
}

func identifier(s string) bool { return s != "" && skip(s, 0, len(s), memberByte) == len(s) }

// idleValues are words that follow a name, in code, forms and messages.
var idleValues = wordSet(`string str text varchar char password passwort passwd pass secret token none null nil true false undefined optional required
	invalid incorrect missing wrong expired empty unset unknown any object number integer int bool boolean bytes byte binary hidden visible enabled disabled
	default yes required* needed valid basic bearer digest apikey type value values field input label name username user email admin_ see auto generated
	changed reset forgot update updated confirm confirmed match matches weak strong short long void never self this other external internal plain
	plaintext encrypted hashed hash file env environment static dynamic public private readonly read write func function class struct interface const
	let var return async await new delete typeof instanceof import export from as in of is and or not if else for while use used using with without
	bcrypt argon2 argon2id scrypt sha256 md5 rsa ed25519 openid oauth oauth2 saml ldap kerberos jwt cookie session header query body form json xml
	passwordinput secretstr securestring pathlike prompt interactive manual passphrase credentials ask deny allow all always once unauthorized forbidden
	failed failure ok okay error success denied accepted rejected revoked rotated verified unverified here there below above
	contraseña contrasena senha mot kennwort пароль 密码 密碼 パスワード 비밀번호 обязателен requis requerida erforderlich obligatoire falsch`)

// idleStems begin words for what is required, in many languages, and for the field of a form.
var idleStems = strings.Fields(`oblig obrig obblig requer requir requis richiest necess erforder pflicht verplicht vereist krävs kräver påkrev påkræv pakoll vaaditt wymag povinn
	zadej vyžad kötelező zorunlu gerekli обов обязат требу потріб задолж υποχρεωτ απαιτ campo champ feld veld pole поле необход مطلوب إلزامي נדרש חובה आवश्यक अनिवार्य 必 必須 필수 bắt wajib จำเป็น`)

// proseWords are words of sentences; a phrase for a password has none of them.
var proseWords = wordSet(`a an are at be been but by can cannot confirm contain contains could do does don't enter field for forgot from has have
	how if in incorrect into invalid is it its least length login may minimum must need needs new no not of on or please required reset see set should
	than that the their then this to too used using was we when which will with you your and min max characters character used description`)

func isProse(v string) bool {
	n, words := 0, 0
	for w := range strings.FieldsSeq(strings.ToLower(v)) {
		words++
		if m := mixOf(strings.TrimRight(w, ".,:;!?")); m.letters > 0 && m.digits+m.signs > 0 {
			return false // no word
		}
		if w = strings.Trim(w, ".,:;!?()\"'"); proseWords[w] || nouns[w] != noSecret {
			n++
		}
	}
	return words > 1 && (n > 0 || words > 24 || words > 8 && words < 11)
}

// wordsOnly reports names such as parse_token2 and cfg.auth.key1 that stand in code.
// One word with digits at its end may be a bad password, and is none.
func wordsOnly(s string) bool {
	t := strings.TrimRight(s, ".:!?)")
	if strings.ContainsAny(t, "._-") && wordNumber(t) {
		return true
	}
	return skip(t, 0, len(t), letterClass) == len(t) && (len(t) < 16 || camelWords(t))
}

var letterClass = classOf(`[A-Za-z]`)

// wordNumber reports words with one sign between two, and a number at their end.
func wordNumber(s string) bool {
	end := skipBack(s, len(s), max(0, len(s)-4), digitClass)
	if end > 0 && end < len(s) && strings.IndexByte("._-", s[end-1]) >= 0 {
		end--
	}
	for i := range end {
		switch {
		case letterClass.has(s[i]):
		case strings.IndexByte("._-", s[i]) >= 0 && i+1 < end && letterClass.has(s[i+1]):
		default:
			return false
		}
	}
	return true
}

// camelWords reports words that begin with a capital each, but perhaps the first.
func camelWords(s string) bool {
	s = strings.TrimRight(s, "0123456789")
	words, length := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			if i > 0 && length < 2 {
				return false
			}
			words, length = words+1, 1
		case c >= 'a' && c <= 'z':
			if i == 0 {
				words++
			}
			length++
		default:
			return false
		}
	}
	return words > 1 && length > 1
}

// dashedWords reports a name of several words and numbers: eu-west-1-cluster-02.
func dashedWords(s string) bool {
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '-' || r == '_' || r == '.' || r == '/' || r == ':' })
	if len(parts) < 3 {
		return false
	}
	for _, p := range parts {
		if strings.Trim(p, "0123456789") != "" && strings.Trim(p, "abcdefghijklmnopqrstuvwxyz") != "" && strings.Trim(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" && !camelWords(p) {
			return false
		}
	}
	return true
}

// isPassphrase reports joined words with a number of two to four digits at the end, in a form that
// identifiers and names of machines seldom have: winter-yellow-92, Maple_velvet27.
func isPassphrase(s string) bool {
	s = strings.TrimRight(s, ".,:!?")
	words := strings.TrimRight(s, "0123456789")
	n := len(s) - len(words)
	if len(s) < 10 || n < 2 || n > 4 || digitsOf(words) > 0 || strings.Contains(words, ".") || strings.Contains(words, "_") && (strings.Contains(words, "-") || strings.ToLower(words) == words) {
		return false
	}
	for w := range strings.FieldsFuncSeq(words, func(r rune) bool { return r == '-' || r == '_' }) {
		if len(w) < 3 || strings.ToLower(w[1:]) != w[1:] {
			return false
		}
	}
	return isJoined(s)
}

// isJoined reports words with a sign between two, and a digit, of which none is a word of programs or
// for a secret: Harbor-Light7, lime.kiln.88. Four words need no digit. A place that names a secret
// makes it one; elsewhere it is a name.
func isJoined(s string) bool {
	s = strings.TrimRight(s, ".,:!?")
	if len(s) < 8 || len(s) > maxName || strings.ToUpper(s) == s {
		return false
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	letters, at, long := 0, 0, true
	for _, p := range parts {
		bare := strings.Trim(p, "0123456789")
		word := strings.ToLower(bare)
		if skip(p, 0, len(p), alnumByte) != len(p) || technical[word] || technical[strings.ToLower(p)] || infrastructure[word] || idleValues[bare] || proseWords[bare] || nots[bare] || nouns[word] > weak {
			return false
		}
		letters, at, long = letters+len(bare), at+len(p)+1, long && len(bare) > 3
	}
	if at != len(s)+1 || len(parts) < 2 || letters < 4 {
		return false
	}
	last := parts[len(parts)-1]
	if s[len(s)-len(last)-1] == '.' && skip(last, 0, len(last), letterClass) == len(last) {
		return false // a member, or the ending of a file
	}
	return digitsOf(s) > 0 || long && len(parts) > 3
}

var alnumByte = classOf(`[A-Za-z0-9]`)

// isProper reports joined words with a capital and a digit, which few identifiers have.
func isProper(s string) bool { return digitsOf(s) > 0 && strings.ToLower(s) != s && isJoined(s) }

// infrastructure are words in names of machines, places and versions.
var infrastructure = wordSet(`server host node prod production staging stage dev test testing cluster worker web app api west east north south central zone
	region build branch rev revision beta alpha rc snapshot default primary secondary replica master main pod group pool disk volume user users admin svc
	service backup gateway proxy router switch queue job jobs run task room desk floor utc january february march april june july august september october
	november december jan feb mar apr jun jul aug sep oct nov dec`)

// pathSegment reports words with a sign behind each but the last, then a number of
// four digits at most and an ending of a file; up to two of .@~ may stand before.
func pathSegment(s string) bool {
	i := skip(s, 0, 2, segmentHead)
	for {
		word := i
		i = skip(s, i, len(s), letterClass)
		if i == word || i == len(s) || s[i] != '_' && s[i] != '.' && s[i] != '-' {
			break
		}
		i++
	}
	i = skip(s, i, 4, digitClass)
	if i < len(s) && s[i] == '.' {
		if word := skip(s, i+1, 5, letterClass); word > i+1 {
			i = skip(s, word, 1, digitClass)
		}
	}
	return i == len(s)
}

var segmentHead = classOf(`[.@~]`)

// isPathLike reports paths by their segments: words, with a number at the end at
// most. The random text of a key has digits between its letters.
func isPathLike(s string) bool {
	s = strings.TrimRight(s, ".:")
	if !strings.Contains(s, "/") {
		return false
	}
	for seg := range strings.SplitSeq(s, "/") {
		if !pathSegment(seg) {
			return false
		}
	}
	return true
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

func isHash(s string) bool {
	_, digest, ok := strings.Cut(s, ":")
	if !ok {
		digest = s
	}
	return len(digest) >= 7 && len(digest) <= 128 && isHex(digest) || strings.HasPrefix(s, "sha256-") || strings.HasPrefix(s, "sha512-") || strings.HasPrefix(s, "sha1-") || strings.HasPrefix(s, "sha384-")
}

func isUUID(s string) bool {
	return len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' && isHex(strings.ReplaceAll(s, "-", ""))
}

// isLogin reports the base64 of a user and a password with a colon between them.
func isLogin(v string) bool {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding} {
		if b, err := enc.DecodeString(v); err == nil {
			user, pass, ok := strings.Cut(string(b), ":")
			return ok && user != "" && len(pass) > 2 && readable(b)
		}
	}
	return false
}

// readable reports printable ASCII.
func readable(b []byte) bool {
	for _, c := range b {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return len(b) > 0
}
