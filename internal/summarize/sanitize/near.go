package sanitize

import (
	"strings"
	"unicode/utf8"
)

// stems begin words for a password, a passphrase or a PIN, in many languages and with any
// ending. Stems of ASCII letters are found as names too.
var stems = withCapitals(strings.Fields(`passwort kennwort passphrase passcode parolă parola пароль парол лозинк гасл пассворд contraseñ contrasen
	contrasenya contrasinal senha palavra-passe wachtwoord wagwoord adgangskod kodeord lösenord passord lykilorð salasan parool parole slaptažod hasło hasł heslo hesl jelszó jelszav
	geslo zaporka lozink şifre şifrə sifre parol κωδικό συνθηματικ סיסמ סיסמא пінкод пинкод пин-код mdp sandi katalaluan nenosiri pasahitz pasvort fjalëkalim
	密码 密碼 口令 通行码 パスワード 合言葉 비밀번호 암호 패스워드 पासवर्ड पासफ़्रेज़ পাসওয়ার্ড கடவுச்சொல் รหัสผ่าน รหัสลับ құпиясөз գաղտնաբառ პაროლი گذرواژه رمز السر المرور
	ລະຫັດຜ່ານ លេខសម្ងាត់`))

// verbs stand before a name and a password.
var verbs = withCapital([]string{
	"log in", "login", "sign in", "signin", "logged in", "log on", "logon", "unlock", "decrypt", "protected with", "locked with", "authenticate", "anmelde", "melde dich", "melde mich", "einloggen", "logge dich", "logge mich", "entsperr",
	"connecte-", "connectez-", "connecter", "me connecte", "connexion", "identifiant", "inicia sesi", "iniciar sesi", "entra con", "ingresa", "accede", "acced", "inlog", "zaloguj", "logowan", "войди", "зайди", "логин", "вход", "увійди", "logga in", "log ind", "přihlas",
	"kirjaudu", "giriş", "登录", "登陆", "ログイン", "로그인", "سجل الدخول", "đăng nhập", "masuk", "creds", "credential", "zugangsdaten", "credenciales", "credenciais", "accesso", "inloggegevens", "user/pass", "login/pass", "username", "user name", "user ", "connect with", "connect as",
	"rdp:", "vnc:", "ssh:", "ftp:", "sftp:", "vpn:", "mail:", "imap:", "smtp:", "account:", "konto:", "zugang:", "compte:", "cuenta:", "demo:", "staging:", "prod:", "access:", "acceso:",
})

// notAfter follow the word for a password where the sentence is about something else.
var notAfter = wordSet(`hash hashes hashing reset resets field fields policy policies file files manager managers length prompt prompts form forms strength expiry
	rotation requirements table column columns must should cannot can't may expires expired check checks checker checking validation validator generator store
	protection protected authentication auth grant flow input box change changes changed_ update page screen dialog handling handler mismatch error errors
	test tests testing encryption algorithm encoder encoding type tokens token less based parameter param option flag argument variable env attribute property
	management service api endpoint route recovery-page attempts attempt login-page visibility toggle component hint hints complexity history cracking guess
	wird muss soll kann darf doit peut debe puede deve deve_ moet mag must_ är_ muß wurde_ hasher utils util helper helpers module class function method`)

// maxEnding bounds the letters of an ending.
const maxEnding = 12

// near looks for secrets in the sentence around the word for one.
func (f *finder) near(from, to int, w weight) {
	if w == noSecret || f.state.near == from+1 && f.state.weight >= w || from > 0 && inBase64.has(f.s[from-1]) || to < len(f.s) && inBase64.has(f.s[to]) {
		return
	}
	f.state.near, f.state.weight = from+1, w
	for last := min(len(f.s), to+maxName/2); to < last && f.s[to] >= utf8.RuneSelf; { // the ending of the word
		r, n := utf8.DecodeRuneInString(f.s[to:])
		if !wordRune(r) || unspaced(r) {
			break
		}
		to = skip(f.s, to+n, maxEnding, letterClass)
	}
	if w >= medium {
		f.adjacentDigits(from, to)
	}
	all := f.around(from)
	f.work += 4 + 2*len(all)
	if len(all) == 0 {
		return
	}
	other := notAfter[f.wordBehind(to)] && !strings.HasPrefix(f.low[to:], " should be ") // the sentence may be about something else
	for i := range all {
		c := &all[i]
		between, behind := "", c.from >= to
		switch {
		case behind:
			between = f.s[to:max(to, c.head)]
		case c.to <= from:
			between = f.s[c.to:from]
		default:
			continue
		}
		f.work += 2 * len(between)
		if (!other || w == strong && c.shape >= mixed && strings.ToLower(f.s[c.from:c.to]) != f.s[c.from:c.to]) && f.linked(c, between, behind, w, span{from, to}) {
			f.accept(c.span)
		}
	}
}

var inBase64 = classOf(`[/+]`)

// adjacentDigits finds a key of 32 hexadecimal digits or more right behind the word for one.
func (f *finder) adjacentDigits(from, to int) {
	if word := f.low[from:to]; !strings.HasSuffix(word, "secret") && !strings.HasSuffix(word, "key") && !strings.HasSuffix(word, "password") && word != "token" {
		return
	}
	i := skip(f.s, to, 3, adjacentGap)
	if strings.HasPrefix(f.s[i:], "(") {
		i = min(len(f.s), i+2+max(0, strings.IndexByte(f.s[i:min(len(f.s), i+24)], ')')-1))
	}
	for _, link := range []string{"is ", ": ", "= ", "0x"} {
		if strings.HasPrefix(f.low[skip(f.s, i, 2, blank):], link) {
			i = skip(f.s, i, 2, blank) + len(link)
		}
	}
	end := skip(f.s, i, maxName*2, hexByte)
	if end+28 <= len(f.s) && i+36 <= len(f.s) && isUUID(f.s[i:i+36]) {
		end = i + 36
	}
	f.work += end - to
	if i > to && end-i >= 32 && !f.wordAt(end) && entropy(f.s[i:end]) > 2.5 {
		f.accept(span{i, end})
	}
}

var adjacentGap = classOf("[ `'\"]")

// accept notes a candidate, once.
func (f *finder) accept(at span) {
	if !f.covered(at) {
		f.found = append(f.found, at)
	}
}

// wordBehind is the next word in small letters.
func (f *finder) wordBehind(i int) string {
	i = skip(f.s, i, 2, nameGap)
	return f.low[i:skip(f.s, i, 16, letterClass)]
}

var nameGap = classOf(`[ _-]`)

// linked reports whether a candidate belongs to a word for a secret, by its shape and what
// stands between the two.
func (f *finder) linked(c *candidate, between string, behind bool, w weight, word span) bool {
	between = strings.Replace(between, "; it", " it", 1)
	if ends := strings.Contains(between, ". ") || strings.Contains(between, "! ") || strings.Contains(between, "; "); ends || !behind && isNamed(f.low, c.from, c.shape) {
		return false
	}
	between = withoutParentheses(between)
	if f.equated(c, between, behind, w, word) {
		return true
	}
	if c.shape <= opaque || behind && isNamed(f.low, c.from, c.shape) {
		return false
	}
	adjacent := len(between) < 24 && strings.Trim(between, " \"'`:*(=0578.>|;~\u2192\u2014\u2013-") == ""
	code := !adjacent && strings.ContainsAny(between, "(){}=;<>[]")
	if code && !c.quoted {
		return false
	}
	if strings.Contains(between, `\n`) || strings.Contains(between, `\t`) || strings.Contains(between, `\r`) {
		return false // another line
	}
	words := strings.Count(strings.Trim(between, " "), " ")
	want := chosen
	if c.shape == worded {
		return w == strong && !code && len(between) < 60 && (adjacent && behind || behind && equates[lastWord(f.low, c.from)] || !behind && words < 4 && asWords[firstWord(between)])
	}
	switch {
	case w == weak:
		if !behind || c.quoted || len(between) > 24 || !startsWithWord(f, c.head) {
			return false
		}
	case adjacent && behind && c.paired:
	case behind && c.quoted && fallbacks[strings.Trim(between, " \"'`)}]")]:
		want = chosen
	case code && !behind:
		return false
	case code && w < strong:
		want = random
	case code:
		want = mixed
	case w == medium && behind && len(between) < 48 && c.to-c.from >= 8 && startsWithWord(f, word.from):
	case w == medium && adjacent && behind && c.to-c.from >= 12:
		want = mixed
	case w == medium && behind && c.to-c.from >= 8 && words < 8 && pinLinks[lastWord(f.low, c.from)]:
		want = mixed
	case w == medium:
		want = random
	case words > 6 || len(between) > 60:
		want = mixed
	case adjacent && behind && !c.quoted && f.bare(c):
		want = numbered
	}
	if !behind && (words > 4 || len(between) > 40) || behind && len(between) > 100 {
		return false
	}
	return c.shape >= want
}

// A clause that calls a text a secret counts for more than the shape of that text: "the token of
// the sandbox is X", "X als Passwort". Then a digest, an id, or a word with a number is one too.

// Bounds of such a clause.
const (
	callBytes  = 90 // between the word for a secret and the text
	callWords  = 10
	asWordsMax = 4  // between a text and the word for a secret behind it
	keptBefore = 40 // where the verb of a change is looked for
)

// equated reports that a clause calls a candidate a secret.
func (f *finder) equated(c *candidate, between string, behind bool, w weight, word span) bool {
	between = strings.Replace(between, "->", "→", 1)
	if w < medium || len(between) > callBytes || strings.ContainsAny(between, "(){}<>[]\n\\") || w == medium && c.shape != counted && !c.named(f.s) && !isProper(f.s[c.from:c.to]) {
		return false
	}
	if w == medium && c.shape == counted { // "the token count is 40000" counts tokens
		link := strings.Trim(between, " ")
		return behind && (equates[link] || !strings.Contains(link, " ") && hasAny(link, particles, strings.HasSuffix))
	}
	if !behind {
		first := firstWord(between)
		return strings.Count(strings.TrimSpace(between), " ") < asWordsMax &&
			(asWords[first] || hasAny(between, particles, strings.HasPrefix) || forWords[first] && takes[lastWord(f.low, c.from)])
	}
	before := strings.TrimRight(between, " \"'`*_„“«")
	switch {
	case before == "," && c.shape > counted && strings.HasPrefix(f.s[c.to:], ", "): // the token, X, …
		return true
	case before == "" || before == "," && c.quoted:
		called := w == strong && c.shape != counted || strings.Contains(f.low[word.from:word.to], "secret") || c.shape == opaque && strings.HasSuffix(f.low[word.from:word.to], "token")
		return called && (c.shape != hyphened || isProper(f.s[c.from:c.to])) && f.closes(c)
	}
	if strings.Count(before, " ") >= callWords {
		return false
	}
	if strings.IndexByte(":=>", before[len(before)-1]) >= 0 || hasAny(before, dashes, strings.HasSuffix) {
		if first := firstWord(before); c.shape == hyphened && strings.Contains(before, " ") && (utf8.RuneCountInString(first) > 4 || first == "name") {
			return false // no preposition: something else is named
		}
		return strings.IndexByte(before, '=') == strings.LastIndexByte(before, '=')
	}
	if hasAny(before, particles, strings.HasSuffix) {
		return true
	}
	link := strings.ToLower(before[strings.LastIndexAny(before, " ,")+1:])
	if link == "to" || link == "from" { // of what was changed; in Polish a copula
		return hasAny(f.low[max(0, c.from-callBytes-keptBefore):c.from], changes, strings.Contains)
	}
	return equates[link]
}

// closes reports that a clause ends behind a candidate, or a word of no Latin script.
func (f *finder) closes(c *candidate) bool {
	i := skip(f.s, c.to, 3, closing)
	return i >= len(f.s) || f.s[i] == '\n' || f.s[i] >= 0xd0 || i > c.to && f.s[i-1] != ' '
}

var closing = classOf("[ \"'`.,;!?)]")

// hasAny reports that a relation holds between a text and one of others.
func hasAny(s string, all []string, holds func(s, part string) bool) bool {
	for _, part := range all {
		if holds(s, part) {
			return true
		}
	}
	return false
}

func digitsOf(s string) (n int) {
	for i := range len(s) {
		if digitClass.has(s[i]) {
			n++
		}
	}
	return n
}

var (
	dashes  = []string{"—", "–", " -", "→"}
	changes = []string{"set ", "chang", "updat", "rotat", "switch", " do "}
	// takes stand before a text that is to be used for something, and forWords behind it.
	takes    = wordSet("use using take try type enter nimm verwende utilise usa gebruik använd bruk")
	forWords = wordSet("for für pour para per voor för til")
	// particles join a name and its value in scripts without spaces.
	particles = strings.Fields("是 为 為 作为 作為 当作 當作 当 成 叫 用 は が を に として なら 은 는 이 가 을 를 로 으로 को คือ")
	// qualifiers make a word for a key or a code one for a secret.
	qualifiers = newWordFinder(strings.Fields("api secret secrèt secrét geheim segret segred hemlig salai tajn tajem gizli секрет таємн 秘密 비밀 سر access acces accè acceso acesso accesso zugang zugriff toegang åtkomst adgang tilgang dostęp přístup доступ erişim truy akses pääsy 访问 訪問 アクセス 액세스 وصول unlock entsperr door wifi wlan wi-fi gate entry webhook واجهة"))
	// tokenWords are words for a token, and qualifiedWords for a key or a code.
	tokenWords     = withCapital(strings.Fields("令牌 トークン 토큰 токен жетон टोकन טוקן توكن โทเค็น パス tokenu tokenem secret_id secret-id"))
	qualifiedWords = withCapital(strings.Fields("schlüssel nyckel nøkkel nøgle sleutel clé clef chave chiave klucz klíč kľúč ključ ключ kulcs avain anahtar κλειδί مفتاح מפתח कुंजी 密钥 密鑰 金鑰 钥匙 キー 키 khóa kunci clave code código codice codigo kod kode код コード 코드 κωδικ رمز"))
)

// calling looks around a word for a secret that has any ending of its language. One that is not
// plain, for a key or a code, has a qualifier beside it.
func (f *finder) calling(from, to int, plain bool) {
	start, end := skipBack(f.s, from, max(0, from-maxName/2), letterOrDash), skip(f.s, to, 6, letterClass)
	window := f.bytes[max(0, start-asideBytes):min(len(f.s), end+asideBytes)]
	if start < from { // a compound
		window = f.bytes[start:end]
	}
	f.work += 2 * len(window)
	if !plain && !qualifiers.matches(window) || end < len(f.s) && strings.IndexByte("_(", f.s[end]) >= 0 {
		return
	}
	if r, _ := utf8.DecodeLastRuneInString(f.s[:start]); f.s[from] >= utf8.RuneSelf && start == from && wordRune(r) {
		return // the end of another word
	}
	f.near(from, end, medium)
}

var letterOrDash = classOf(`[A-Za-z-]`)

// asideBytes is how far from a word for a key or code a qualifier may stand.
const asideBytes = 24

// fallbacks are the operators between a name and its default value.
var fallbacks = map[string]bool{"||": true, "??": true, "?:": true, "or": true, "| default": true, "|default": true, "||=": true, ".unwrap_or(": true, ", default=": true}

// startsWithWord reports whether a line has only words and numbers before at, like a setting of a device.
func startsWithWord(f *finder, at int) bool {
	line := f.back(at, '\n', readBefore)
	return skip(f.low, line, at-line, settingByte) == at
}

var settingByte = classOf(`[a-z0-9 .-]`)

// withoutParentheses is a text without one remark in parentheses.
func withoutParentheses(s string) string {
	before, rest, ok := strings.Cut(s, "(")
	if _, behind, closed := strings.Cut(rest, ")"); ok && closed {
		return before + behind
	}
	return s
}

// lastWord is the word before a place.
func lastWord(low string, at int) string {
	fields := strings.Fields(low[max(0, at-14):at])
	if len(fields) == 0 {
		return ""
	}
	return strings.Trim(fields[len(fields)-1], "\"'`*")
}

// bare reports that nothing else stands in the rest of the line.
func (f *finder) bare(c *candidate) bool {
	i := skip(f.s, c.to, 4, blank)
	return i >= len(f.s) || f.s[i] == '\n'
}

// isNamed reports that a candidate is the name of something, by the word before it.
func isNamed(low string, at int, sh shape) bool {
	end := skipBack(low, at, 0, spaceOrQuote)
	word := low[skipBack(low, end, max(0, end-14), letterClass):end]
	return end < at && (nameWords[word] || sh < mixed && prepositional[word])
}

var spaceOrQuote = classOf("[ `'\"]")

// nameWords stand before names.
var nameWords = wordSet(`user username login account host server machine database table file branch commit version release issue ticket
	tenant bucket cluster region namespace pod container image tag repo repository project model benutzer utilisateur usuario usuário utente gebruiker пользователь
	called named ssid address ip id`)

// equates stand between a word for a password and what it is, and asWords between what it is and
// that word. A name of something else follows other words.
var (
	equates = wordSet(`is was were 's it's its be being become becomes reads = ist lautet heißt wird war sei est était es son era será é è sono são är er on je jest są brzmi to_ je byl este e είναι εἶναι это является теперь равен now ahora agora jetzt maintenant nu ora adesso olarak use nimm salasanana ay ni adalah ialah là คือ הוא היא هو هي है होगा és bitte`)
	asWords = wordSet(`as als comme como come jako som olarak är ist is was est es é è er jest är это как в_качестве sebagai làm como per als_ da ca mint से के`)
)

// firstWord is the word that a text begins with.
func firstWord(s string) string {
	fields := strings.Fields(strings.TrimLeft(s[:min(len(s), 24)], "\"'`*,. "))
	if len(fields) == 0 {
		return ""
	}
	return strings.ToLower(fields[0])
}

// prepositional words stand before names more often than before secrets.
var prepositional = wordSet(`test on at from via in by see`)

// stem looks around a word for a password.
func (f *finder) stem(from, to int) {
	if f.wordAt(from-1) && f.s[from] < utf8.RuneSelf {
		return
	}
	if r, _ := utf8.DecodeLastRuneInString(f.s[:from]); f.s[from] >= utf8.RuneSelf && wordRune(r) {
		return
	}
	end := to
	for end < min(len(f.s), to+12) && (f.s[end] >= utf8.RuneSelf && f.s[from] < utf8.RuneSelf || letterClass.has(f.s[end]) || f.s[end] == '\'') {
		end++
	}
	if end < len(f.s) && (f.s[end] == '_' || f.s[end] == '(' || f.s[end] == '.' && end+1 < len(f.s) && wordClass.has(f.s[end+1])) {
		return // code
	}
	if letterClass.has(f.s[max(0, end-1)]) && end-to > 4 && f.s[from] < utf8.RuneSelf {
		return // another word
	}
	f.near(from, end, strong)
}

// verb looks behind a word that a login follows.
func (f *finder) verb(from, to int) {
	if f.wordAt(from-1) || f.state.verb > from || to < len(f.s) && letterClass.has(f.s[to]) && english[f.low[from:to]] {
		return
	}
	f.state.verb = to
	all := f.around(from)
	f.work += 4 + 2*len(all)
	for i := range all {
		c := &all[i]
		if c.from < to || c.from > to+80 {
			continue
		}
		between := f.s[to:max(to, c.head)]
		f.work += 2 * len(between)
		if strings.ContainsAny(strings.TrimRight(between, " ="), "(){}=;<>[]\\") || strings.Contains(between, ". ") || isNamed(f.low, c.from, c.shape) && !c.paired {
			continue
		}
		if !c.paired && !opens[f.low[from:to]] && strings.Trim(between, "0123456789 \t\"'`:=*,-/") == "" {
			continue // the name of a user
		}
		if f.low[to-1] == ':' {
			if c.paired && c.named(f.s) {
				f.accept(c.span)
			}
			continue
		}
		if f.low[from:to] == "user " && (!f.bare(c) || from > 0 && f.s[from-1] != '\n' && f.s[from-1] != ' ' || strings.Contains(between, " ") && strings.Count(between, " ") != 1) {
			continue
		}
		if strings.Trim(between, " \"'`*") == "as" {
			continue // the name of a user
		}
		if words := strings.Fields(strings.Trim(between, "\"' ")); len(words) == 1 && simpleWord(strings.Trim(words[0], "\"'")) && c.shape >= chosen && (strings.HasPrefix(f.low[from:to], "log") || f.low[from:to] == "user ") && !strings.ContainsAny(between, ",:") {
			f.accept(c.span) // LOGIN user password
			continue
		}
		if c.shape == mixed || c.named(f.s) && (c.paired || c.shape != worded && joints[lastWord(f.low, c.from)]) || c.shape == worded && equates[lastWord(f.low, c.from)] || c.shape >= chosen && c.quoted {
			f.accept(c.span)
		}
	}
}

var (
	english = map[string]bool{"login": true, "log in": true, "signin": true, "sign in": true, "log on": true, "logon": true, "unlock": true, "decrypt": true, "username": true, "user name": true, "authenticate": true}
	opens   = map[string]bool{"creds": true, "credential": true, "zugangsdaten": true, "inloggegevens": true, "credenciales": true, "credenciais": true, "protected with": true, "locked with": true}
)

// joints stand between two that belong together.
var joints = wordSet("with and / : using it's is mit und avec et con y com e met en с и z i med och og ja ile ve 和 と")
