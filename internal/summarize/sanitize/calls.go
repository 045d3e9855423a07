package sanitize

import (
	"slices"
	"strings"
)

// calls end names of functions that are given a user and a password, or a key, as literals.
var calls = []string{
	"auth(", "auth=(", "auth = (", "auth: (", "auth: [", "auth' => ['", "login(", "connect(", "mysqli(", "pdo(", "connection(", "credential(", "credentials(", "pw_set(", "user(", "userpassword(", "wifi.begin(",
	"securestring(", "securestring ", "wallet(", "toaccount(", "signer(", "hmac(", "hmac.new(", "fernet(", "keyspec(", ".sign(", ".encode(", ".decode(", ".verify(", "keys(", "type(", "fill(", "setkey(", "apikey(", "token(", "sethttpauth(", "secret(", "key(", "handler(", "authentication(", "hashpw(", "create_user(", "createuser(", "create_superuser(", "twilio(", "fromhex(", "from_hex(", "hex.decodestring(", "unhexlify(", "buffer.from(", "hextobytes(",
}

// weakCalls take a password only where one is named in the same line.
var weakCalls = []string{"keys(", "type(", "fill(", "user(", "connection("}

// keyDecoders take a key only where one is named before them.
var keyDecoders = []string{"fromhex(", "from_hex(", "hex.decodestring(", "unhexlify(", "buffer.from(", "hextobytes("}

// keyCalls take nothing but a key, so that digits alone are one.
var keyCalls = []string{"wallet(", "toaccount(", "signer(", "fernet(", "keyspec(", "hmac(", "hmac.new(", "apikey(", "setkey("}

// call looks at the literals that a function is given.
func (f *finder) call(from, to int) {
	if f.tokens || f.state.call > from {
		return
	}
	end := min(f.ahead(to, '\n', readBehind), len(f.s))
	f.state.call = min(end, to+readAgain/4)
	word := f.low[from:to]
	if slices.Contains(weakCalls, word) && !strings.Contains(f.low[max(0, from-readBefore):to], "pass") && !strings.Contains(f.low[max(0, from-readBefore):to], "pw") {
		return
	}
	decoder := slices.Contains(keyDecoders, word)
	if before := f.low[max(0, from-maxName/2):from]; decoder && !strings.Contains(before, "key") && !strings.Contains(before, "secret") && !strings.Contains(before, "seed") {
		return
	}
	literals := f.literals(to, end)
	f.work += 2 * (end - to)
	if strings.Contains(word, "hmac") && len(literals) > 0 && literals[0].from > to+2 {
		return // the key is no literal
	}
	for i, at := range literals {
		text := f.s[at.from:at.to]
		f.work += 3 * len(text)
		switch {
		case (decoder || slices.Contains(keyCalls, word)) && isKey(text):
			f.accept(at)
		case i == 0 && len(literals) > 1 && !f.keyed(word):
			// the user or the host
		case isAppPassword(text), shapeOf(text) >= mixed, shapeOf(text) >= numbered && i == len(literals)-1 && i > 0 && i < 3 && (strings.Contains(word, "auth") || strings.Contains(word, "user(")), i > 0 && word == "twilio(" && isKey(text), f.keyed(word) && shapeOf(text) >= chosen:
			f.accept(at)
		}
	}
}

// keyed reports a call that is given a secret first.
func (f *finder) keyed(word string) bool {
	return word != "type(" && word != "fill(" && !strings.Contains(word, "auth") && !strings.Contains(word, "user(") && word != "handler(" && word != "twilio(" && !strings.Contains(word, "connect") && word != "login(" && word != "mysqli(" && word != "pdo(" && word != "user("
}

// isKey reports the digits of a key of 16 bytes or more, or base64 of one.
func isKey(s string) bool {
	s = strings.TrimPrefix(s, "0x")
	return len(s) >= 32 && (isHex(s) && entropy(s) > 2.5 || skip(s, 0, len(s), base64Byte) >= len(s)-1 && entropy(s) > 4) || shapeOf(s) >= mixed
}

// literals are those of a call, up to its end: four at most.
func (f *finder) literals(from, end int) (out []span) {
	s := f.s
	depth := 0
	for i := from; i < end && len(out) < 4; i++ {
		switch {
		case s[i] == '(':
			depth++
		case s[i] == ')':
			if depth--; depth < 0 {
				return out
			}
		case quoteByte.has(s[i]) && i+1 < end:
			k := strings.IndexByte(s[i+1:end], s[i])
			if k < 0 {
				return out
			}
			at := span{i + 1, i + 1 + k}
			if after := skip(s, at.to+1, 2, blank); k > 3 && !(after < end && s[after] == ':') { // the name of a member
				out = append(out, at)
			} else if k <= 3 {
				out = append(out, span{at.from, at.from})
			}
			i = at.to
		}
	}
	return out
}

// isAppPassword reports four groups of four small letters, as Google writes a password.
func isAppPassword(s string) bool {
	if len(s) != 19 {
		return false
	}
	for i := range len(s) {
		if i%5 == 4 != (s[i] == ' ') || i%5 != 4 && (s[i] < 'a' || s[i] > 'z') {
			return false
		}
	}
	return true
}
