package sanitize

import (
	"strings"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
)

// ownUse is called at each place of one of its words in a text.
type ownUse struct {
	words []string
	look  func(f *finder, from, to int)
}

// state is the memory of own rules on their way through a text, so that they read no part of it repeatedly.
type state struct {
	name    int        // end of the name that was checked last
	quotes  [8]stretch // by the kind of quote: where the last literal began and ended
	values  [2]stretch // the last values without quotes, in code and in lines
	command int        // end of the command that was read last
	row     int        // beginning of the line that is no header of a table
	table   tableState
	aligned tableState // the last with columns of spaces
	copied  int        // end of the rows that COPY gives
	line    stretch    // the last line that was looked up
	header  int        // end of the last header or cookies
	piped   int        // end of the last text read in a pipe
	pgpass  int        // end of the last line of .pgpass
	keyEnd  stretch    // range of the last search for the end of a key
	marked  bool       // whether it was found
	digest  int        // end of the last range searched for digests
	pem     int        // end of the last private key
	near    int        // after the beginning of the last word whose surroundings were read
	weight  weight     // of that word
	call    int        // end of the last call read
	phrase  int        // end of the last search for words of a wallet
	here    int        // end of the last here-string
	insert  int        // end of the last insertion
	webKey  int        // end of the last key in JSON
	verb    int        // end of the last word for a login
	flag    int        // end of the last flag with a value
	updated int        // end of the last condition of a statement
	around  surroundings
}

// keyWords are words of which every name of a secret has one.
var keyWords = []string{
	"pass", "pwd", "psw", "pw", "psk", "secret", "token", "key", "auth", "cred", "sig", "sid", "session", "jwt", "dsn", "seed", "mnemonic", "bearer", "cookie", "webhook",
	"connectionstring", "communit", "salt", "authentication", "keymaterial", "verifier", "license", "sessid", "totp", "_pat", "adgangskode", "contrasen", "geslo", "haslo", "heslo", "jelszo", "katasandi", "kennwort", "losenord", "lozinka",
	"matkhau", "mdp", "parol", "parool", "salasana", "senha", "sifre", "slaptazodis", "wachtwoord", "zaporka", "clave", "jeton", "geheimnis", "segredo", "fjalekalimi", "schlussel",
}

func ownUses() []ownUse {
	return append([]ownUse{
		{keyWords, (*finder).named},
		{append(append([]string{}, foreign...), phrases...), (*finder).foreign},
		{stems, (*finder).stem},
		{tokenWords, func(f *finder, from, to int) { f.calling(from, to, true) }},
		{qualifiedWords, func(f *finder, from, to int) { f.calling(from, to, false) }},
		{verbs, (*finder).verb},
		{pins, (*finder).pin},
		{calls, (*finder).call},
		{[]string{"<<<"}, (*finder).hereString},
		{[]string{"echo ", "printf "}, (*finder).echo},
		{[]string{" -p", " -pw ", " -w "}, (*finder).userAndPassword},
		{[]string{"--value ", "--value=", "--body ", "--secret-string "}, (*finder).valueFlag},
		{[]string{"oracle:thin:", " /user:"}, (*finder).besideUser},
		{[]string{"where "}, (*finder).updated},
		{[]string{"-u ", "--user ", "--user=", "--basic-auth ", "--auth ", "--creds "}, (*finder).userFlag},
		{[]string{`send "`, `send -- "`, `sendline("`, `sendline('`}, (*finder).sent},
		{[]string{`; name="`}, (*finder).formField},
		{[]string{"@tcp(", "@unix("}, (*finder).dsn},
		{[]string{"new value:", "new password:", "generated password:", "generated for "}, (*finder).newValue},
		{[]string{"mnemonic", "seed", "recovery", "phrase", "wallet", " words"}, (*finder).phrase},
		{[]string{"ugfzc3dvcmq6"}, (*finder).answered},
		{[]string{"insert into "}, (*finder).inserted},
		{[]string{"from stdin"}, (*finder).copied},
		{[]string{"/reset/", "/reset-password/", "/password-reset/", "/magic/", "/magic-link/", "/verify/", "/invite/", "/confirm/", "/activate/", "/unsubscribe/", "?code=", "&code=", "?t=", "?k=", "?key=", "&key=", "#code="}, (*finder).link},
		{[]string{"@"}, (*finder).userInfo},
		{[]string{"wifi:"}, (*finder).wifi},
		{[]string{`"kty"`}, (*finder).webKey},
		{[]string{"recovery codes", "backup codes", "scratch codes", "recovery code", "backup code", "license key", "licence key", "activation code", "activation key", "product key", "registration key", "one-time codes", "wiederherstellungscodes", "codes de secours"}, (*finder).codes},
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

// named checks the name around a word, and its value.
func (f *finder) named(from, to int) {
	if from < f.state.name {
		return // part of the name that was checked last
	}
	s := f.s
	start := skipBack(s, from, max(0, from-maxName, f.state.name), identByte)
	end := to
	for end < min(len(s), to+maxName) && (identTail.has(s[end]) || s[end] == '.' && end+1 < len(s) && wordClass.has(s[end+1])) {
		end++
	}
	f.work += end - start
	f.state.name = end
	dashes := len(s[start:end]) - len(strings.TrimLeft(s[start:end], "-"))
	n := name{from: start, bare: start + dashes, to: end, flag: dashes > 0}
	n.weight = weigh(s[n.bare:end])
	if n.from == n.bare && f.ordered(&n) {
		return
	}
	if n.weight <= weak && s[n.bare:end] != "" {
		n.weight = max(n.weight, f.spaced(&n))
	}
	if n.weight == noSecret && !n.flag && f.low[n.bare:end] == "secret_id" {
		n.weight = medium // of a role; as a flag it names what is stored
	}
	if f.low[n.bare:end] == "signature" && (start == 0 || s[start-1] != '?' && s[start-1] != '&') {
		n.weight = noSecret // outside a URL it proves a text, and opens nothing
	}
	if n.weight == noSecret {
		return
	}
	found := len(f.found)
	f.valueOf(&n)
	if len(f.found) == found && n.weight >= medium {
		f.below(n.to)
	}
	if len(f.found) == found {
		f.near(n.bare, n.to, n.weight)
	}
}

// ordered finds the value after a name of a secret that begins with a verb: set-initial-password X.
func (f *finder) ordered(n *name) bool {
	verb, rest, _ := strings.Cut(f.low[n.bare:n.to], "-")
	if verb != "set" && verb != "reset" && verb != "change" || weigh(rest[strings.LastIndexByte(rest, '-')+1:]) != strong {
		return false
	}
	args, _ := f.arguments(n.to)
	f.work += maxCommand
	if len(args) != 1 || len(args[0].text) < 6 || strings.Trim(args[0].text, "abcdefghijklmnopqrstuvwxyz.-/") == "" || args[0].text[0] == '-' {
		return false
	}
	return f.password(args[0].span)
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
	start := skipBack(s, n.from-1, max(0, n.from-16), identTail)
	before := strings.ToLower(s[start : n.from-1])
	before = before[strings.LastIndexAny(strings.TrimRight(before, "-0123456789"), "-_")+1:]
	switch {
	case last == "key" && (keyed[before] || keyed[strings.TrimRight(before, "-0123456789")]):
		return medium
	case last == "phrase" && (before == "pass" || before == "seed" || before == "recovery"), last == "code" && before == "pass":
		return strong
	}
	return noSecret
}

// foreign checks the value of a word for a password in another language.
func (f *finder) foreign(from, to int) {
	if r, _ := utf8.DecodeRuneInString(f.s[to:]); r < 0x3000 && r >= 'A' && wordRune(r) {
		return // a longer word
	}
	f.state.name = to
	found := len(f.found)
	f.valueOf(&name{from: from, bare: from, to: to, weight: strong})
	if len(f.found) == found {
		f.near(from, to, strong)
	}
}

func wordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0xc0 && r < 0x3000
}

// valueOf finds the value of a name, and notes it if it is a secret.
func (f *finder) valueOf(n *name) {
	at, how, ok := f.behind(n)
	if !ok {
		f.table(n)
		return
	}
	f.readValue(n, at, how)
}

// readValue reads the value at a place.
func (f *finder) readValue(n *name, at int, how syntax) {
	if m := objectHead().FindStringSubmatchIndex(f.s[at:min(len(f.s), at+maxRead)]); m != nil {
		if m[2] >= 0 {
			f.readValue(n, at+m[1], inLine)
		}
		return // the names of its members are none
	}
	v, how := f.literal(at, how)
	if v.to-v.from > maxValue {
		v.to = v.from + maxValue
	}
	if v.from >= v.to || f.covered(v) {
		return
	}
	text := f.s[v.from:v.to]
	if strings.HasPrefix(text, "!!") && v.to < len(f.s) && f.s[v.to] == ' ' { // a tag of YAML
		f.readValue(n, v.to+1, inLine)
		return
	}
	if i := skip(text, 0, maxName, noSign); how != inQuotes && i > 0 && i < min(maxName, len(text)-2) && (weigh(text[:i]) != noSecret || foreignSet[lowered(text[:i])] || i > 3 && foreignEnd(text[:i])) {
		f.work += i
		return // another name with its own value
	}
	f.work += 4 * min(len(text), maxRead)
	secret := isSecret(text, n.weight, how)
	if !secret && n.weight == medium && strings.HasSuffix(f.low[n.bare:n.to], "auth") && len(text) >= 8 && isLogin(text) {
		secret = true
	}
	if !secret && n.weight == weak && strings.HasSuffix(f.s[n.bare:n.to], "_KEY") && len(text) >= 32 && isHex(text) && entropy(text) > 2.5 {
		secret = true // of the environment of a program
	}
	if secret {
		f.found = append(f.found, v)
	}
}

var noSign = classOf(`[^=:]`)

var (
	// valueSeparator stands between a name that is a value itself and the value it is for.
	valueSeparator = lazyregexp.New(`^[\\"'\x60]{0,8}(?:\s{0,3},\s{0,20}|\s{0,3}\r?\n[ \t]{0,20}|\s{1,3})(?:\{\s{0,8})?[\\"'\x60]{0,8}(?i:value|val|default|defaultvalue|secretstring|content|data|plaintext)[\\"'\x60]{0,8}\s{0,3}(?::|=>|=)\s{0,4}`)
	// objectHead begins an object with the value among its members.
	objectHead = lazyregexp.New(`^\{\s{0,20}["']\w{1,30}["']\s{0,3}:([^{}]{0,160}?["']value["']\s{0,3}:\s{0,4})?`)
	// elementSeparator stands between the name in an attribute or element and its text.
	elementSeparator = lazyregexp.New(`^(?:[\\"']{1,4}(?:\s{1,4}[\w:.-]{1,30}=(?:"[^"<>]{0,40}"|'[^'<>]{0,40}')){0,3}\s{0,3}>|</(?:key|name|string|dt|th|td|b|strong|label)>\s{0,20}:?\s{0,20}<(?:string|value|dd|td|code|b|data|kbd|pre|span)>)\s{0,20}`)
	proseSeparator   = lazyregexp.New(`^[*_"'\x60]{0,3}(?:\s{0,2}(?:for|of|to|on|de|für|für den)\s[\w@.'/ -]{1,40}?)?(?:\s{0,2}\([^()\n]{0,40}\))?[*_]{0,3}(?:\s{0,3}:[*_]{0,3}\s{0,4}|\s{1,3}(?:is now|is|was|will be|set to|ist|lautet|est|es|é|è|är|er|on|jest|je|это|equals|to|as|=)\s{0,2}:?\s{1,4}|\s{0,2}(?:是|为|は|は、|의|=)\s{0,3})`)
)

var (
	valueEdge  = classOf("[\\\\\"'`,\\s{]")
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
	word := skip(s, k, 8, proseByte)
	if (s[k] < 0x80 && s[k] != ':' && s[k] != '=' && s[k] != '(' || s[k] >= 0x80 && s[k] < 0xe0) && !proseHeads[s[k:word]] {
		return 0
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
	if m := proseSeparator().FindStringIndex(rest); m != nil {
		return i + m[1]
	}
	return 0
}

var prepositions = wordSet("for of to on de für will set")

var (
	proseGap  = classOf("[ \t*_\"'`]")
	proseByte = class{0, letterClass[1], ^uint64(0), ^uint64(0)} // of ASCII a letter
)

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
	k = skip(s, from, 32, memberByte)
	if k == from || !colon && !typeNames[s[from:k]] {
		return 0
	}
	if k < len(s) && (s[k] == '<' || s[k] == '[' || s[k] == '*') {
		k = skip(s, k, 48, typeArgs)
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
	memberByte = classOf(`[\w.]`)
	typeArgs   = classOf(`[\w<>\[\], |*]`)
	typeRest   = classOf(`[\w |]`)
	typeNames  = wordSet("string str String char text NSString")
)
