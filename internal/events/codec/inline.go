package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
)

// Inline media come in three forms. Most are a string: base64, or a data URL of it. Bytes of
// JavaScript and Python that were written as JSON are a list: {"0":137,"1":80}, or
// {"type":"Buffer","data":[137,80]}, or [137,80]. And media of which only the hash was kept are a
// reference: a string, or the data of a data URL, that begins with "sha256:".

// hashScheme begins a reference. No base64 has a colon.
const hashScheme = "sha256:"

// base64Prefix ends the head of a data URL.
var base64Prefix = []byte(";base64,")

// Inline is a text in place of media.
type Inline struct {
	Head []byte // of a data URL, up to the data; nil for other texts
	Data []byte // base64, or a reference
}

// InlineOf divides a text. ok is false for a URL without base64.
func InlineOf(text []byte) (in Inline, ok bool) {
	if !bytes.HasPrefix(text, []byte("data:")) {
		return Inline{Data: text}, true
	}
	at := bytes.Index(text, base64Prefix)
	if at < 0 {
		return in, false
	}
	at += len(base64Prefix)
	return Inline{text[:at:at], text[at:]}, true
}

// Hash returns the SHA-256 of a reference, in hexadecimal digits, and the fields after it; nil for other
// data.
func (in Inline) Hash() (digits, fields []byte) {
	rest, ok := bytes.CutPrefix(in.Data, []byte(hashScheme))
	if !ok || len(rest) < 2*sha256.Size || len(rest) > 2*sha256.Size && rest[2*sha256.Size] != ';' {
		return nil, nil
	}
	digits, fields = rest[:2*sha256.Size], rest[2*sha256.Size:]
	if len(bytes.Trim(digits, "0123456789abcdef")) > 0 {
		return nil, nil
	}
	return digits, fields
}

// hashPiece is how much base64 is decoded at once: a whole number of its groups.
const hashPiece = 64 << 10

// Sum returns the SHA-256 of the decoded base64, and its size. Both alphabets are read, with and without
// padding, and line breaks are skipped. ok is false for any other text.
func (in Inline) Sum() (sum [sha256.Size]byte, size int, ok bool) {
	text := bytes.TrimRight(in.Data, "=\r\n")
	if bytes.ContainsAny(text, "\r\n") {
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r"), nil), []byte("\n"), nil)
	}
	code := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		code = base64.RawURLEncoding
	}
	h := sha256.New()
	var room [hashPiece / 4 * 3]byte
	for len(text) > 0 {
		piece := text[:min(len(text), hashPiece)]
		text = text[len(piece):]
		n, err := code.Decode(room[:], piece)
		if err != nil {
			return sum, 0, false
		}
		h.Write(room[:n])
		size += n
	}
	h.Sum(sum[:0])
	return sum, size, true
}

// AppendHash writes the reference of a hash, without any field.
func AppendHash(out []byte, sum [sha256.Size]byte) []byte {
	return hex.AppendEncode(append(out, hashScheme...), sum[:])
}

// ListMargin exceeds the size of an element of a list of bytes, with the white space before it.
const ListMargin = 96

// ListHead returns the length of the opening of a list of bytes at the beginning of b, whether its elements
// have indexes, and the tokens that close it. n is 0 for any other value.
func ListHead(b []byte) (n int, indexes bool, closing []string) {
	if n = tokens(b, "{", `"0"`, ":"); n > 0 {
		return tokens(b, "{"), true, []string{"}"}
	}
	if n = tokens(b, "{", `"type"`, ":", `"Buffer"`, ",", `"data"`, ":", "["); n > 0 {
		return n, false, []string{"]", "}"}
	}
	return tokens(b, "["), false, []string{"]"}
}

// tokens returns the length of tokens at the beginning of b, with white space between them; 0 if they are not
// there.
func tokens(b []byte, all ...string) (n int) {
	for _, t := range all {
		if n = space(b, n); !bytes.HasPrefix(b[n:], []byte(t)) {
			return 0
		}
		n += len(t)
	}
	return n
}

// space is the end of white space.
func space(b []byte, n int) int {
	for n < len(b) && (b[n] == ' ' || b[n] == '\n' || b[n] == '\r' || b[n] == '\t') {
		n++
	}
	return n
}

// ListElement reads element i of a list of bytes, with the comma before it; n is 0 if there is none.
func ListElement(b []byte, i int, indexes bool) (n int, value byte) {
	if i > 0 {
		if n = space(b, 0); n == len(b) || b[n] != ',' {
			return 0, 0
		}
		n++
	}
	if indexes {
		var room [24]byte
		key := append(strconv.AppendInt(append(room[:0], '"'), int64(i), 10), '"')
		if n = space(b, n); !bytes.HasPrefix(b[n:], key) {
			return 0, 0
		}
		if n = space(b, n+len(key)); n == len(b) || b[n] != ':' {
			return 0, 0
		}
		n++
	}
	n = space(b, n)
	from, number := n, 0
	for ; n < len(b) && '0' <= b[n] && b[n] <= '9' && n < from+4; n++ {
		number = number*10 + int(b[n]-'0')
	}
	if digits := n - from; digits == 0 || digits > 1 && b[from] == '0' || number > 255 || n == len(b) {
		return 0, 0
	}
	switch b[n] {
	case ' ', '\n', '\r', '\t', ',', ']', '}':
		return n, byte(number)
	}
	return 0, 0
}

// ListEnd returns the length of the closing tokens of a list of bytes, 0 if b does not begin with them.
func ListEnd(b []byte, closing []string) int {
	if n := space(b, 0); n == len(b) || b[n] == ',' {
		return 0
	}
	return tokens(b, closing...)
}

// ByteList decodes the list of bytes at the beginning of b, and returns its length, 0 for any other value.
func ByteList(b []byte) (data []byte, n int) {
	n, indexes, closing := ListHead(b)
	if n == 0 {
		return nil, 0
	}
	for {
		if len(data) > 0 {
			if m := ListEnd(b[n:], closing); m > 0 {
				return data, n + m
			}
		}
		m, value := ListElement(b[n:], len(data), indexes)
		if m == 0 {
			return nil, 0
		}
		data, n = append(data, value), n+m
	}
}
