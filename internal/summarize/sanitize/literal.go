package sanitize

import (
	"slices"
	"strings"
)

// quoteKinds are the pairs of quotes of a literal.
var quoteKinds = []struct{ open, close string }{
	{`"`, `"`}, {`'`, `'`}, {"`", "`"}, {"“", "”"}, {"‘", "’"}, {"«", "»"}, {"„", "“"}, {"「", "」"},
}

// literal is the value at a place: in its quotes, or as far as it goes without.
func (f *finder) literal(at int, how syntax) (span, syntax) {
	s := f.s
	if how == inProse || how == inLine {
		at = skip(s, at, 3, bold)
	}
	i := skip(s, at, 3, literalHead)
	if i == at || i < len(s) && !quoteByte.has(s[i]) {
		i = at
	}
	if i < len(s) && (s[i] == '[' || s[i] == '{') && i+1 < len(s) && quoteByte.has(s[i+1]) {
		i++
	}
	slashes := skip(s, i, 8, backslash) - i
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

var (
	bold        = classOf(`[*_]`)
	literalHead = classOf(`[bBrRfFuUL@$]`)
)

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

// codeEnds and lineEnds end a value without quotes. lineEnds does not hold the bytes that only
// code puts behind a value.
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
		if how == inProse && s[i] >= 0xe3 {
			break // no letter of a password: the sentence goes on without a space
		}
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
	k := skip(s, i+1, 39, memberName)
	f.work += k - i
	return k < len(s) && k > i+1 && s[k] == '='
}

var memberName = classOf(`[\w.% -]`)

// calls end names of functions that are given a user and a password, or a key, as literals.
var calls = []string{
	"auth(", "authenticate(", "auth=(", "auth = (", "auth: (", "auth: [", "auth' => ['", "login(", "connect(", "mysqli(", "pdo(", "connection(", "credential(", "credentials(", "pw_set(", "user(", "userpassword(", "wifi.begin(",
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
	if f.state.call > from {
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
		case isAppPassword(text), shapeOf(text) >= mixed, i > 0 && isProper(text), i == len(literals)-1 && i > 0 && i < 3 && (strings.Contains(word, "auth") || strings.Contains(word, "user(") || word == "login(") && (shapeOf(text) >= numbered || isOpaque(text)), i > 0 && word == "twilio(" && isKey(text), f.keyed(word) && shapeOf(text) >= chosen:
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
