package sanitize

import (
	"slices"
	"strings"
)

// pins stand before a code of a few digits.
var pins = withCapital([]string{
	"pin", "pincode", "door code", "gate code", "access code", "alarm code", "security code", "verification code", "entry code", "unlock code", "passcode", "otp", "one-time", "use code", "enter code", "le code est", "der code ist", "el código es", "il codice è", "o código é", "de code is", "türcode", "zugangscode", "code pin", "código pin",
	"code d'accès", "código de acceso", "código de acesso", "codice pin", "kod pin", "pinkod", "пинкод", "пин-код", "пін-код", "пінкод", "пин", "пін", "код доступа", "暗証番号", "pin码", "验证码", "密码", "핀번호", "비밀번호", "rappelpin",
})

// notPins stand before or behind the word where it is about a part of a device or a version.
var notPins = wordSet(`gpio led pad digital analog the_ rst reset_ sda scl tx rx d version versions npm numpy dependency dependencies header connector chip cpu thread kernel memory tweet
	board ic exit status error response to on out in mode number# release number_of`)

// pin looks for a code of 4 to 8 digits behind the word for one.
func (f *finder) pin(from, to int) {
	if f.wordAt(from-1) && f.s[from] < 0x80 && f.s[from-1] != '_' {
		return
	}
	s := f.s
	end := skip(s, to, 12, pinEnding)
	if !pinEnds[f.low[to:end]] {
		return
	}
	before := strings.Fields(f.low[max(0, from-16):from])
	if len(before) > 0 && notPins[strings.Trim(before[len(before)-1], "_(")] {
		return
	}
	f.near(from, end, medium)
	f.work += 48
	stop := min(f.ahead(end, '\n', 48), len(s))
	for i := end; i < stop; i++ {
		switch {
		case digitClass.has(s[i]):
			f.code(end, i)
			return
		case strings.IndexByte(".;!)(}{<>[]|", s[i]) >= 0:
			return
		}
	}
}

var (
	pinEnding = classOf(`[\w'-]`)
	pinEnds   = func() map[string]bool {
		out := wordSet("s code -code _code _number codes 's nummer kod en codice code's")
		out[""] = true
		return out
	}()
)

// code notes the digits at a place, if they belong to the word before them.
func (f *finder) code(from, at int) {
	s := f.s
	to := skip(s, at, 9, digitClass)
	if n := to - at; n < 4 || n > 8 || f.wordAt(to) || f.wordAt(at-1) || s[at-1] == '.' || s[at-1] == '-' || s[at-1] == '/' || to+1 < len(s) && strings.IndexByte(".:-/%", s[to]) >= 0 && digitClass.has(s[to+1]) {
		return
	}
	between := strings.Trim(f.low[from:at], " \t\"'`*:=,")
	words := strings.Fields(between)
	if len(words) > 6 || len(words) > 0 && !pinLinks[words[len(words)-1]] && !strings.ContainsAny(f.low[from:at], ":=—") && between[0] < 0x80 {
		return
	}
	if len(words) == 0 && strings.TrimLeft(f.low[from:at], " ") == "" && at-from > 0 && to < len(s) && !strings.ContainsAny(s[to:to+1], "\n\r,.;!#)\"' ") {
		return
	}
	if len(words) == 0 && strings.TrimLeft(f.low[from:at], " ") == "" && strings.HasPrefix(f.low[to:], " is ") {
		return // pin 4711 is not valid
	}
	f.accept(span{at, skip(s, to, 1, hash)})
}

var hash = classOf(`[#]`)

var pinLinks = wordSet("number is ist est es é è är er on je to и это は to_ becomes lautet equals = : was now still sono to: jest olarak là")

// phrase finds the words of a wallet: 12 to 24 of 3 to 8 small letters, with nothing between them
// that makes a sentence.
func (f *finder) phrase(_, to int) {
	if to < f.state.phrase {
		return
	}
	s := f.s
	end := min(f.ahead(to, '\n', 280), len(s))
	f.state.phrase = to + 24
	f.work += 2 * (end - to)
	last, from := 0, 0
	for i, words, prose := to, 0, 0; i < end; {
		k := skip(s, i, 9, smallLetter)
		plain := proseWords[s[i:k]]
		if k-i < 3 || k-i > 8 || plain && words == 0 {
			words, prose = 0, 0
			if i = max(k, i+1); i > to+64 {
				return
			}
			continue
		}
		if words == 0 {
			from = i
		}
		if words, last = words+1, k; plain {
			prose++
		}
		gap := skip(s, k, 2, wordGap)
		if gap == k || gap >= end || !smallLetter.has(s[gap]) {
			if words >= 12 && words <= 27 && prose <= 1 && 10*distinct(s[from:last]) >= 9*words {
				f.accept(span{from, last})
				return
			}
			words, prose = 0, 0
		}
		i = max(gap, k)
	}
}

// distinct counts the different words of a text.
func distinct(s string) int {
	words := strings.Fields(s)
	slices.Sort(words)
	return len(slices.Compact(words))
}

var (
	smallLetter = classOf(`[a-z]`)
	wordGap     = classOf(`[ ,]`)
)

// answered finds the answer in the line behind the base64 of "Password:".
func (f *finder) answered(_, to int) {
	for _, a := range f.first(skip(f.s, to, 3, anySpace)) {
		f.password(a.span)
	}
}

// codes finds the codes that stand in for a second factor.
func (f *finder) codes(_, to int) {
	i := skip(f.s, to, 24, codeGap)
	f.work += 2 * maxRead
	for n := 0; n < 16 && i < min(len(f.s), to+maxRead); n++ {
		end := skip(f.s, i, 32, identTail)
		dashes := strings.Count(f.s[i:end], "-")
		if end-i < 6 || dashes == 0 && digitsOf(f.s[i:end]) < 2 || dashes > 5 {
			return
		}
		f.accept(span{i, end})
		if i = skip(f.s, end, 8, codeGap); i == end {
			return
		}
	}
}

var codeGap = classOf("[ \\t\\r\\n,:*•.\"'`\\[|-]")
