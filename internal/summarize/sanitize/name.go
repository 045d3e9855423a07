package sanitize

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// weight is the strength with which a name suggests a secret value.
type weight int

const (
	noSecret weight = iota
	weak            // a key of something: a secret if it looks random
	medium          // a token, a secret, an API key
	strong          // a password: anything that is no word for it
)

// nouns are the last words of names, in small letters. Longer ones are also found at
// the end of a word that is written without a separator (dbpassword).
var nouns = map[string]weight{
	"pass": strong, "passcode": strong, "passphrase": strong, "passwd": strong, "password": strong, "pw": strong, "pwd": strong, "psw": strong,
	"pswd": strong, "passwrd": strong, "requirepass": strong, "masterauth": strong, "psk": strong, "sshpass": strong, "userpass": strong,
	"adgangskode": strong, "contrasena": strong, "contrasenya": strong, "contrasenia": strong, "geslo": strong, "haslo": strong, "heslo": strong, "jelszo": strong,
	"katasandi": strong, "kennwort": strong, "losenord": strong, "lozinka": strong, "matkhau": strong, "mdp": strong, "motdepasse": strong,
	"parol": strong, "parola": strong, "parole": strong, "parool": strong, "passord": strong, "passwort": strong, "salasana": strong, "senha": strong,
	"sifre": strong, "slaptazodis": strong, "wachtwoord": strong, "zaporka": strong, "clave": medium, "fjalekalimi": strong, "pasahitza": strong,

	"apikey": medium, "apitoken": medium, "accesskey": medium, "accesstoken": medium, "accountkey": medium, "auth": medium, "authkey": medium,
	"authtoken": medium, "bearer": medium, "clientsecret": medium, "connectionstring": medium, "cred": medium, "credential": medium,
	"dsn": medium, "encryptionkey": medium, "jwt": medium, "licensekey": medium, "masterkey": medium, "mnemonic": medium, "privatekey": medium,
	"secret": medium, "secretkey": medium, "seed": weak, "session": weak, "sessionid": medium, "sessionkey": medium, "sessiontoken": medium,
	"sharedkey": medium, "sid": weak, "sig": medium, "signature": weak, "signingkey": medium, "token": medium, "usertoken": medium, "webhook": weak,
	"secretstring": strong, "otpauth": medium, "totp": medium, "cookie": weak, "pat": medium, "authorization": medium,
	"jeton": medium, "geheimnis": medium, "segredo": medium, "secreto": medium, "schlussel": weak,
	"key": weak, "salt": weak, "keystring": medium, "secretid": medium, "keymaterial": strong, "keycontent": strong, "bindpw": strong, "rootpw": strong, "dbpw": strong, "userpw": strong, "adminpw": strong, "credentials": medium, "creds": medium,
	"authentication": weak, "verifier": weak, "license": weak, "phpsessid": weak, "jsessionid": weak, "community": weak, "rocommunity": medium, "rwcommunity": medium, "passwordconfirmation": strong,
}

// longNouns are those that words may end in, by their last letter, the longest first.
var longNouns = func() (by [256][]string) {
	for n, w := range nouns {
		if len(n) >= 5 && w >= medium || n == "pass" || n == "pwd" {
			last := n[len(n)-1]
			by[last] = append(by[last], n)
		}
	}
	for _, some := range by {
		slices.SortFunc(some, func(a, b string) int { return len(b) - len(a) })
	}
	return by
}()

// keyed are words before "key" that make it a secret.
var keyed = wordSet(`access account admin agent api app application auth aws azure bot client consumer crypto decryption deploy dkim
	encrypt encryption enc function hmac host integration internal jwt license licence management master openai preshared priv private
	provisioning read recovery registration secret security server service shared sign signing ssh ssl storage stripe subscription tls vault webhook
	write wrap wrapping instrumentation aes hmac wallet wireless wpa wpa2 wpa3 wifi psk wireguard preshared signer deployer minisign age gpg pgp rsa ec routing ingestion ingest intake kaggle anthropic openrouter groq mistral sendgrid mailgun twilio datadog`)

// ends may follow the noun in a name; with others it is the name of something else.
var ends = wordSet(`b64 base base64 bak backup bytes current data decoded default dev development enc encoded env hex key live local main master
	new old one original plain plaintext preprod prev previous prd primary prod production qa raw read root rw ro sandbox second secondary stage staging
	str string temp test testing text tmp uat user val value write ssm param parameter variable var override plaintxt clear cleartext confirmation confirm again repeat salt db database mysql postgres redis smtp mail ftp ssh admin api server app`)

// nots are words before the noun that make it no secret, or a count of it.
var nots = wordSet(`allow avg ban begin bos bot_ bypass cache cached cancel cancellation change check composite compare completion confirm continuation
	count css csrf xsrf cursor date disable display dom duplicate empty encode enable end eos expect extra field foreign forgot generate get has hash hide
	html idempotency import index input invalid is json language last lexer lookup map max mask min missing mode next no num number object of
	old_ ordinal output pad page pagination parse parser partition plural primary prompt public publishable pub punctuation range ref remember
	require required reset resume row search semantic show skip slot sort special start stop sync syntax tab total translate type
	unk unknown unique update upload use used valid validate verify weak wrong zone reasoning thinking average per foo item layer attention`)

func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		out[w] = true
	}
	return out
}

// weigh returns the weight of a name.
func weigh(name string) weight {
	var room [24]string
	words := splitName(name, room[:0])
	n := len(words)
	for n > 1 && (ends[words[n-1]] && nouns[words[n-1]] == noSecret || isNumeral(words[n-1]) || words[n-1] == "data" || words[n-1] == "id" && words[n-2] == "session") {
		n--
	}
	if n == 0 {
		return noSecret
	}
	last := words[n-1]
	w, ok := nouns[last]
	if !ok {
		w, ok = nouns[strings.TrimSuffix(last, "s")]
		if ok && w < strong {
			w = weak // a plural counts more often than it names
		}
	}
	for k := n - 2; !ok && k >= max(0, n-3); k-- { // pass_phrase, mot_de_passe
		w, ok = nouns[strings.Join(words[k:n], "")]
		ok = ok && w == strong
	}
	if !ok {
		if last, w = endsInNoun(last); w == noSecret {
			return noSecret
		}
	}
	if n > 1 && nots[words[n-2]] || n > 2 && nots[words[n-3]] && words[n-2] != "access" {
		return noSecret
	}
	if last == "key" && n > 1 && keyed[words[n-2]] {
		return medium
	}
	return w
}

// notPass end in "pass" and name no password.
var notPass = []string{"bypass", "compass", "encompass", "overpass", "surpass", "trespass", "underpass", "multipass", "singlepass", "renderpass", "subpass", "typepass", "lowpass", "highpass", "bandpass", "byepass", "impass"}

// endsInNoun finds a noun at the end of a word without separators.
func endsInNoun(word string) (string, weight) {
	if word == "" {
		return "", noSecret
	}
	for _, noun := range longNouns[word[len(word)-1]] {
		if strings.HasSuffix(word, noun) && !slices.Contains(notPass, word) && !nots[word[:len(word)-len(noun)]] {
			return noun, nouns[noun]
		}
	}
	return "", noSecret
}

func isNumeral(s string) bool {
	return strings.Trim(s, "0123456789") == "" || len(s) <= 3 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}

// splitName appends the words of a name to out, in small letters.
func splitName(name string, out []string) []string {
	start := -1
	flush := func(end int) {
		if start >= 0 && len(out) < cap(out) {
			out = append(out, strings.ToLower(name[start:end]))
		}
		start = -1
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			small := i > 0 && (name[i-1] >= 'a' && name[i-1] <= 'z' || name[i-1] >= '0' && name[i-1] <= '9')
			next := i > 0 && i+1 < len(name) && name[i-1] >= 'A' && name[i-1] <= 'Z' && name[i+1] >= 'a' && name[i+1] <= 'z'
			if small || next {
				flush(i)
			}
			if start < 0 {
				start = i
			}
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			if start < 0 {
				start = i
			}
		default:
			flush(i)
		}
	}
	flush(len(name))
	return out
}

// foreign are words for a password that are not made of ASCII letters, each with its
// capital.
var foreign = withCapitals(strings.Fields(`contraseña contrasenya hasło jelszó lösenord şifre slaptažodis κωδικός пароль парола лозинка пассворд
	密码 密碼 口令 パスワード 暗証番号 비밀번호 암호 סיסמה סיסמא كلمةالمرور मेंपासवर्ड पासवर्ड รหัสผ่าน mậtkhẩu гасло құпиясөз գաղտնաբառ პაროლი fjalëkalimi`))

// phrases are those of several words.
var phrases = withCapital([]string{"mot de passe", "kata sandi", "mật khẩu", "كلمة المرور", "كلمة السر", "رمز عبور", "clé d'api", "clé api", "лозинка", "lozinka", "κωδικός πρόσβασης", "ключ api", "api-schlüssel", "clave api", "clave de api", "chave api", "chave de api", "chiave api", "api密钥", "api 密钥", "密钥", "apiキー", "api 키", "api키", "klucz api", "api anahtarı", "秘密鍵", "key content", "schlüsselinhalt", "秘密键"})

// withCapitals are words as they stand in sentences and in headings. An ASCII word needs one form.
func withCapitals(words []string) []string {
	out := withCapital(words)
	for _, w := range words {
		if form := lowered(strings.ToUpper(w)); !slices.Contains(out, form) {
			out = append(out, form)
		}
	}
	return out
}

// withCapital are words as they stand in sentences.
func withCapital(words []string) (out []string) {
	for _, w := range words {
		r, n := utf8.DecodeRuneInString(w)
		for _, form := range []string{w, lowered(string(unicode.ToUpper(r)) + w[n:])} {
			if !slices.Contains(out, form) {
				out = append(out, form)
			}
		}
	}
	return out
}

var foreignSet = wordSet(strings.Join(foreign, " "))

// foreignEnd reports a value that goes on with another such word.
func foreignEnd(s string) bool {
	low := lowered(s)
	for k := 2; k < 5; k++ {
		if k < len(low) && foreignSet[low[k:]] {
			return true
		}
	}
	return false
}
