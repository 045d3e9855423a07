package sanitize

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strconv"
	"strings"
)

// Bounds of what is decoded.
const (
	minEncoded  = 20 // bytes that are worth a look
	minBytes    = 8  // numbers of a list
	fullLine    = 60 // of lines of base64 that go on in the next
	maxIndent   = 16 // before the next line
	maxDepth    = 3  // texts that are written in texts
	maxUnpacked = 8  // bytes for each of a compressed text
	maxPacked   = 64 // compressed texts in one text
	packedWork  = 2 << 10
)

// hidden collects the texts that are written in another one in some encoding.
type hidden struct {
	f      *finder
	texts  []byte
	from   []stretch // of each in texts
	in     []span    // of each in the text that holds it
	packed int
}

// encoded returns the texts that are written as base64, as digits of bytes or as their
// numbers in s.
func (f *finder) encoded() *hidden {
	h := &hidden{f: f}
	h.runs()
	h.lists()
	return h
}

func (h *hidden) add(plain []byte, at span) {
	from := len(h.texts)
	h.texts = append(append(h.texts, plain...), "\n\n\n"...)
	h.from = append(h.from, stretch{from, len(h.texts)})
	h.in = append(h.in, at)
	h.f.work += len(plain)
}

// original are the parts of the text that hold what was found in texts.
func (h *hidden) original(found []span) (out []span) {
	k := 0
	for _, at := range merged(found) {
		for k < len(h.from) && h.from[k].to <= at.from {
			k++
		}
		if k < len(h.from) {
			out = append(out, h.in[k])
		}
	}
	return out
}

var codedByte = classOf(`[A-Za-z0-9+/_-]`)

// runs decodes what is written in one piece, or in lines.
func (h *hidden) runs() {
	s := h.f.s
	for i := 0; i < len(s); {
		// the last byte of the shortest text first, so that words cost little
		if k := i + minEncoded - 1; k >= len(s) {
			break
		} else if !codedByte.has(s[k]) {
			i = k + 1
			h.f.work++
			continue
		}
		end := h.run(skipBack(s, i+minEncoded-1, i, codedByte))
		h.f.work += end - i
		i = end + 1
	}
}

// run decodes the text that begins at a place, and returns its end.
func (h *hidden) run(start int) int {
	s := h.f.s
	var text []byte
	end := start
	for {
		line := end
		end = skip(s, end, len(s), codedByte)
		text = append(text, s[line:end]...)
		next := end
		if end-line >= fullLine && next < len(s) && (s[next] == '\n' || s[next] == '\r') {
			if next = skip(s, next+1, maxIndent, anySpace); next < len(s) && codedByte.has(s[next]) {
				end = next
				continue
			}
		}
		break
	}
	at := span{start, skip(s, end, 2, padding)}
	if len(text) < minEncoded || h.piece(text, at) || len(text) != end-start {
		return end
	}
	h.f.prefixed(span{start, end})
	for from := start; from < end; { // base64 with a sign beside it
		to := skip(s, from, end-from, base64Byte)
		if to-from >= minEncoded && to-from < end-start {
			h.piece(text[from-start:to-start], span{from, skip(s, to, 2, padding)})
		}
		from = to + 1
	}
	return end
}

var padding = classOf(`[=]`)

// piece adds what a text stands for, if it is a text again.
func (h *hidden) piece(text []byte, at span) bool {
	plain := h.decoded(text)
	if plain == nil {
		return false
	}
	h.add(plain, at)
	return true
}

var base32Byte = classOf(`[A-Z2-7]`)

// decoded is what base64, base32 or hexadecimal digits stand for, if it is a text.
func (h *hidden) decoded(text []byte) []byte {
	if isHex(string(text[:min(len(text), 64)])) {
		if digits := text[:len(text)&^1]; len(digits) > 0 {
			out := make([]byte, len(digits)/2)
			if n, _ := hex.Decode(out, digits); n >= minEncoded/2 && readable(out[:min(n, 512)]) {
				return out[:n]
			}
		}
	}
	if skip(string(text[:min(len(text), 64)]), 0, 64, base32Byte) == min(len(text), 64) {
		if out := make([]byte, len(text)); len(text) >= minEncoded {
			if n, err := base32.StdEncoding.WithPadding(base32.NoPadding).Decode(out, text); err == nil && readable(out[:min(n, 512)]) {
				return out[:n]
			}
		}
	}
	enc := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		enc = base64.RawURLEncoding
	}
	text = text[:len(text)-len(text)%4+map[int]int{0: 0, 2: 2, 3: 3}[len(text)%4]]
	var head [24]byte
	n, err := enc.Decode(head[:], text[:min(len(text), 24)/4*4])
	if err != nil || n < 4 || !readable(head[:n]) && !wide(head[:n]) && !packedHead(head[:n]) {
		return nil
	}
	out := make([]byte, enc.DecodedLen(len(text)))
	n, err = enc.Decode(out, text)
	if err != nil && n < len(text)/2 {
		return nil
	}
	switch out = out[:n]; {
	case packedHead(out):
		return h.unpacked(out)
	case wide(out[:min(n, 64)]):
		return narrow(out)
	case readable(out[:min(n, 512)]):
		return out
	}
	return nil
}

// wide reports ASCII in units of two bytes, the lower first.
func wide(b []byte) bool {
	for i := range b {
		if i%2 == 1 != (b[i] == 0) {
			return false
		}
	}
	return true
}

func narrow(b []byte) []byte {
	out := b[:0]
	for i := 0; i < len(b); i += 2 {
		out = append(out, b[i])
	}
	return out
}

// packedHead reports the beginning of a text that gzip or zlib compressed.
func packedHead(b []byte) bool {
	return len(b) > 3 && (b[0] == 0x1f && b[1] == 0x8b && b[2] == 8 || b[0] == 0x78 && (b[1] == 0x9c || b[1] == 0xda || b[1] == 1))
}

// unpacked is what a text was compressed from, up to some times its size.
func (h *hidden) unpacked(b []byte) []byte {
	if h.packed++; h.packed > maxPacked {
		return nil
	}
	h.f.work += packedWork
	var r io.Reader
	var err error
	if b[0] == 0x1f {
		r, err = gzip.NewReader(bytes.NewReader(b))
	} else {
		r, err = zlib.NewReader(bytes.NewReader(b))
	}
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(io.LimitReader(r, int64(maxUnpacked*len(b)))) // one that is cut has a beginning
	if len(out) == 0 || !readable(out[:min(len(out), 512)]) {
		return nil
	}
	return out
}

var hexByte = classOf(`[0-9a-fA-F]`)

// lists decodes bytes that are written one by one: 70 61 73 73, 112, 97, 115, or as a dump
// with offsets.
func (h *hidden) lists() {
	s := h.f.s
	h.f.work += len(s)
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < '0' || c > '9' || i > 0 && wordClass.has(s[i-1]) {
			continue // the code of a printable character begins with a digit, in decimal and in hexadecimal
		}
		if text, end := dump(s, i); len(text) >= minBytes {
			h.add(text, span{i, end})
			h.f.work += end - i
			i = end
			continue
		}
		text, end := numbers(s, i)
		h.f.work += end - i
		if len(text) >= minBytes && readable(text) {
			h.add(text, span{i, end})
		}
		i = max(i, end-1)
	}
}

// numbers are the bytes of a list that begins at a place.
func numbers(s string, i int) (text []byte, end int) {
	base, decimal, prefixed := 16, false, false
	end = i
	for i < len(s) {
		if strings.HasPrefix(s[i:], "0x") {
			i += 2
			prefixed = true
		}
		k := skip(s, i, 4, hexByte)
		if k-i < 2 || k-i > 3 {
			return text, max(end, k)
		}
		if len(text) == 0 && !prefixed && skip(s, i, 3, digitClass) == k && k < len(s) && (s[k] == ',' || k-i == 3) {
			base, decimal = 10, true
		}
		c, err := strconv.ParseUint(s[i:k], base, 8)
		if err != nil || !decimal && k-i != 2 {
			return text, max(end, k)
		}
		text, end = append(text, byte(c)), k
		i = skip(s, k, 1, between)
		if i = skip(s, i, 3, anySpace); i == k {
			return text, end
		}
	}
	return text, end
}

var between = classOf(`[,:;-]`)

// dump is the text of the lines of a dump, from its first offset on.
func dump(s string, i int) (text []byte, end int) {
	for i < len(s) {
		k := skip(s, i, 9, hexByte)
		if k-i < 7 || k-i > 8 || k >= len(s) || s[k] != ':' && s[k] != ' ' {
			return text, end
		}
		k = skip(s, k+1, 2, blank)
		row := 0
		for row < 16 {
			group := skip(s, k, 8, hexByte)
			if group == k || (group-k)%2 != 0 {
				break
			}
			b, err := hex.DecodeString(s[k:group])
			if err != nil {
				break
			}
			text, row = append(text, b...), row+len(b)
			gap := skip(s, group, 4, blank)
			if k = gap; gap == group || gap-group == 2 && row != 8 || gap-group == 3 {
				break
			}
		}
		if row == 0 {
			return text, end
		}
		end = k + max(0, strings.IndexByte(s[k:min(len(s), k+80)]+"\n", '\n'))
		i = end + 1
		if row < 16 {
			break
		}
	}
	return text, min(end, len(s))
}

// minPrefixed is the least length of a key behind a prefix that no rule has.
const minPrefixed = 32

// prefixed notes a key with the name of what it is for: abc_live_…
func (f *finder) prefixed(at span) {
	text := f.s[at.from:at.to]
	k := strings.LastIndexAny(text, "_-/+") + 1
	prefix, key := text[:k], text[k:]
	f.work += len(text)
	if len(key) < minPrefixed || len(key) > maxName*2 || len(prefix) < 3 || len(prefix) > 20 || strings.ContainsAny(prefix, "/+") || strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || !letterClass.has(prefix[0]) {
		return
	}
	if m := mixOf(key); !hasAny(prefix, idPrefixes, strings.HasPrefix) && m.digits >= 3 && m.small >= 4 && m.letters-m.small >= 4 && entropy(key) > 4 && !placeholder(text) {
		f.found = append(f.found, at)
	}
}

// Bounds of what is read around an escape, in bytes.
const (
	escapeBefore = 160
	escapeBehind = 240
	maxEscaped   = 24 // of an escape that is escaped itself
)

// unescape is what stands around the escapes of a text, with each as the character that it
// is for: %3D, \u003d, \x3d, \075, =3D, &#61;, &quot;. It is false for a text without any.
func unescape(s string) (Text, bool) {
	var b strings.Builder
	t := Text{size: len(s)}
	printable := strings.Contains(s, "=3D") // quoted-printable
	done, until := 0, 0                     // what was copied, and how far the text around the last escape goes
	plain := func(from, to int) {
		if from < to {
			t.runs = append(t.runs, piece{at: b.Len(), from: from, to: to})
			b.WriteString(s[from:to])
		}
	}
	for i := 0; i < len(s); i++ {
		if !escapes[s[i]] || s[i] == '=' && !printable {
			continue
		}
		c, n := escaped(s[i:min(len(s), i+maxEscaped)])
		if n == 0 {
			continue
		}
		if from := contextOf(s, i, max(done, until)); i > until && from > done {
			plain(done, until)
			t.runs = append(t.runs, piece{at: b.Len(), from: from, to: from, whole: true})
			b.WriteByte('\n')
			done = from
		}
		plain(done, i)
		t.runs = append(t.runs, piece{at: b.Len(), from: i, to: i + n, whole: true})
		b.WriteByte(c)
		done, until = i+n, min(len(s), i+n+escapeBehind)
		i += n - 1
	}
	if done == 0 {
		return t, false
	}
	plain(done, until)
	t.S = b.String()
	return t, true
}

var escapes = [256]bool{'%': true, '\\': true, '&': true, '=': true}

// contextOf is where the text before an escape begins that is read with it.
func contextOf(s string, i, least int) int {
	least = min(least, i)
	from := max(least, i-escapeBefore)
	if k := strings.LastIndexByte(s[from:i], '\n'); k >= 0 && from > least {
		from += k + 1
	}
	return from
}

// entities are those of HTML that stand in settings.
var entities = map[string]byte{
	"quot": '"', "apos": '\'', "lt": '<', "gt": '>', "colon": ':', "equals": '=', "nbsp": ' ', "commat": '@', "sol": '/', "lbrace": '{', "rbrace": '}', "dollar": '$', "excl": '!', "num": '#',
}

// escaped is the character that s begins with an escape of, and how long that is.
func escaped(s string) (byte, int) {
	switch s[0] {
	case '%':
		i := 1
		for strings.HasPrefix(s[i:], "25") && i+4 <= len(s) && hexByte.has(s[i+2]) && hexByte.has(s[i+3]) {
			i += 2 // of a percent sign
		}
		return coded(s, i, i+2, 16, 0)
	case '=':
		return coded(s, 1, 3, 16, 0)
	case '\\':
		i := skip(s, 0, 8, backslash)
		if i >= len(s) {
			return 0, 0
		}
		switch {
		case s[i] == 'u' && i+1 < len(s) && s[i+1] == '{':
			end := i + 2 + max(0, strings.IndexByte(s[i+2:], '}'))
			return coded(s, i+2, end, 16, 1)
		case s[i] == 'u':
			return coded(s, i+1, i+5, 16, 0)
		case s[i] == 'x':
			return coded(s, i+1, i+3, 16, 0)
		case digitClass.has(s[i]):
			return coded(s, i, i+3, 8, 0)
		}
		return 0, 0
	}
	i := 1
	for strings.HasPrefix(s[i:], "amp;") {
		i += len("amp;")
	}
	end := strings.IndexByte(s[i:min(len(s), i+9)], ';')
	if end < 1 {
		return 0, 0
	}
	end += i
	if s[i] == '#' && i+1 < end {
		if s[i+1] == 'x' || s[i+1] == 'X' {
			return coded(s, i+2, end, 16, 1)
		}
		return coded(s, i+1, end, 10, 1)
	}
	if c, ok := entities[s[i:end]]; ok {
		return c, end + 1
	}
	return 0, 0
}

var backslash = classOf(`[\\]`)

// coded is the ASCII character whose number stands from one place to another, before an
// end of some bytes.
func coded(s string, from, to, base, ending int) (byte, int) {
	if to <= from || to+ending > len(s) {
		return 0, 0
	}
	c, err := strconv.ParseUint(s[from:to], base, 32)
	if err != nil || c > '~' || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
		return 0, 0
	}
	return byte(c), to + ending
}
