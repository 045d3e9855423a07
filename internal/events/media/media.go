package media

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"

	"compactd/internal/events/codec"
)

// Shape is how large media are.
type Shape struct {
	Width, Height uint16 // of an image, in pixels; of several the mean
	Pages         uint16 // of documents, together
}

// Known reports whether anything is known of the media.
func (s Shape) Known() bool { return s != Shape{} }

// unknownSide is the side of an image of unknown size that is counted together with others.
const unknownSide = 1024

// Add is the shape of n media and one more.
func (s Shape) Add(n int, more Shape) Shape {
	if n == 0 || s == more && s.Pages == 0 {
		return more
	}
	out := Shape{Pages: uint16(min(int(s.Pages)+int(more.Pages), math.MaxUint16))}
	a, b := s.sides(), more.sides()
	switch {
	case a == [2]int{}:
		a = b
	case b != [2]int{}:
		a = [2]int{(a[0]*n + b[0]) / (n + 1), (a[1]*n + b[1]) / (n + 1)}
	}
	out.Width, out.Height = uint16(a[0]), uint16(a[1])
	return out
}

// sides are those of an image, none of a document.
func (s Shape) sides() [2]int {
	switch {
	case s.Width > 0:
		return [2]int{int(s.Width), int(s.Height)}
	case s.Pages > 0:
		return [2]int{}
	default:
		return [2]int{unknownSide, unknownSide}
	}
}

// lowSide is the side of the square that a provider reads an image of low detail in
// (developers.openai.com/api/docs/guides/images-vision, "detail": "low", read on 2026-11-23).
const lowSide = 512

// Low is the shape of an image of low detail: it is made smaller until it is within 512 by 512
// pixels. One of unknown size has that size. A document stays as it is.
func (s Shape) Low() Shape {
	long := int(max(s.Width, s.Height))
	switch {
	case s.Pages > 0 || long > 0 && long <= lowSide:
		return s
	case long == 0:
		return Shape{Width: lowSide, Height: lowSide}
	}
	side := func(n uint16) uint16 { return uint16(max(int(n)*lowSide/long, 1)) }
	return Shape{Width: side(s.Width), Height: side(s.Height)}
}

// The most that is decoded of a value, and of a document at each end.
const (
	maxHeader = 128 << 10
	maxEnd    = 64 << 10
)

// Of returns the shape of a JSON value that is inline media, or a reference to them.
func Of(raw codec.Raw) Shape {
	text, ok := textOf(raw)
	if !ok {
		return Shape{}
	}
	in, ok := codec.InlineOf(text)
	if !ok {
		return Shape{}
	}
	if ref, ok := parse(in); ok {
		return ref.Shape
	}
	return input{in.Data}.shape()
}

// textOf is the text of a JSON value: of a list of bytes their base64.
func textOf(raw codec.Raw) (text []byte, ok bool) {
	switch raw.Kind() {
	case '"':
		if len(raw) < len(`""`) {
			return nil, false
		}
		if text = raw[1 : len(raw)-1]; bytes.IndexByte(text, '\\') >= 0 {
			text = codec.TextBytes(raw)
		}
		return text, true
	case '{', '[':
		list, n := codec.ByteList(raw)
		return base64.StdEncoding.AppendEncode(nil, list), n > 0
	}
	return nil, false
}

func (b input) shape() Shape {
	var head [16]byte
	if b.read(head[:], 0) < 12 {
		return Shape{}
	}
	switch h := head[:]; {
	case bytes.HasPrefix(h, []byte("\x89PNG\r\n\x1a\n")):
		return b.png()
	case bytes.HasPrefix(h, []byte("\xff\xd8\xff")):
		return b.jpeg()
	case bytes.HasPrefix(h, []byte("GIF8")):
		return shape(int(binary.LittleEndian.Uint16(h[6:])), int(binary.LittleEndian.Uint16(h[8:])))
	case bytes.HasPrefix(h, []byte("RIFF")) && bytes.Equal(h[8:12], []byte("WEBP")):
		return b.webp()
	case bytes.HasPrefix(h, []byte("%PDF-")):
		return b.pdf()
	}
	return Shape{}
}

func shape(width, height int) Shape {
	if width <= 0 || height <= 0 {
		return Shape{}
	}
	return Shape{Width: uint16(min(width, math.MaxUint16)), Height: uint16(min(height, math.MaxUint16))}
}

// input is base64 that is decoded where it is read. Base64 with line breaks is not read
// beyond them.
type input struct{ text []byte }

// size is the number of bytes that the whole encodes.
func (b input) size() int {
	return len(bytes.TrimRight(b.text[max(len(b.text)-2, 0):], "="))*3/4 + max(len(b.text)-2, 0)*3/4
}

// read decodes what begins at a byte, and returns how much of to it filled.
func (b input) read(to []byte, at int) int {
	from := at / 3 * 4
	if at < 0 || from >= len(b.text) {
		return 0
	}
	skip := at % 3
	text := bytes.TrimRight(b.text[from:min(from+(skip+len(to)+2)/3*4, len(b.text))], "=")
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	code := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		code = base64.RawURLEncoding
	}
	n, _ := code.Decode(out, text) // what came before a byte that is none is filled
	if n <= skip {
		return 0
	}
	return copy(to, out[skip:n])
}

func (b input) png() Shape {
	var h [24]byte
	if b.read(h[:], 0) < len(h) {
		return Shape{}
	}
	return shape(int(binary.BigEndian.Uint32(h[16:])), int(binary.BigEndian.Uint32(h[20:])))
}

// maxSegments bounds the segments in front of the dimensions of a JPEG: metadata.
const maxSegments = 64

// jpeg goes from segment to segment to the one with the dimensions, and reads none of the
// others.
func (b input) jpeg() Shape {
	at := 2
	for range maxSegments {
		var h [9]byte
		if b.read(h[:], at) < len(h) || h[0] != 0xff {
			return Shape{}
		}
		switch kind := h[1]; {
		case kind == 0xff: // filled up
			at++
			continue
		case kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc:
			return shape(int(binary.BigEndian.Uint16(h[7:])), int(binary.BigEndian.Uint16(h[5:])))
		case kind == 0xd9 || kind == 0xda:
			return Shape{}
		}
		at += 2 + int(binary.BigEndian.Uint16(h[2:]))
	}
	return Shape{}
}

func (b input) webp() Shape {
	var h [30]byte
	if b.read(h[:], 0) < len(h) {
		return Shape{}
	}
	u24 := func(i int) int { return int(h[i]) | int(h[i+1])<<8 | int(h[i+2])<<16 }
	switch string(h[12:16]) {
	case "VP8 ":
		return shape(int(binary.LittleEndian.Uint16(h[26:])&0x3fff), int(binary.LittleEndian.Uint16(h[28:])&0x3fff))
	case "VP8L":
		bits := int(binary.LittleEndian.Uint32(h[21:]))
		return shape(bits&0x3fff+1, bits>>14&0x3fff+1)
	case "VP8X":
		return shape(u24(24)+1, u24(27)+1)
	}
	return Shape{}
}

// bytesPerPage is taken of a document whose tree of pages is not in sight, since it is
// compressed or in the middle: a page of text takes less seldom.
const bytesPerPage = 20_000

// pdf finds the root of the tree of pages, which has the largest count of all its nodes, at the
// beginning or the end of the file, where writers put it.
func (b input) pdf() Shape {
	size := b.size()
	pages := 0
	buf := make([]byte, min(size, maxHeader))
	if size <= maxHeader {
		pages = pagesOf(buf[:b.read(buf, 0)])
	} else {
		pages = pagesOf(buf[:b.read(buf[:maxEnd], 0)])
		pages = max(pages, pagesOf(buf[:b.read(buf[:maxEnd], size-maxEnd)]))
	}
	if pages == 0 {
		pages = max((size+bytesPerPage-1)/bytesPerPage, 1)
	}
	return Shape{Pages: uint16(min(pages, math.MaxUint16))}
}

// pagesOf is the largest count of a node of pages, or that of a linearized file.
func pagesOf(b []byte) (most int) {
	if i := bytes.Index(b, []byte("/Linearized")); i >= 0 {
		dict := b[i:min(i+512, len(b))]
		if end := bytes.Index(dict, []byte(">>")); end >= 0 {
			dict = dict[:end]
		}
		if n := bytes.Index(dict, []byte("/N ")); n >= 0 {
			most = number(dict[n+len("/N"):])
		}
	}
	for rest := b; ; {
		i := bytes.Index(rest, []byte("obj"))
		if i < 0 {
			return most
		}
		rest = rest[i+len("obj"):]
		object := rest
		if before, after, found := bytes.Cut(rest, []byte("endobj")); found {
			object, rest = before, after
		}
		object, _, _ = bytes.Cut(object, []byte("stream"))
		if _, count, found := bytes.Cut(object, []byte("/Count")); found && bytes.Contains(object, []byte("/Kids")) {
			most = max(most, number(count))
		}
	}
}

// number is the whole number that b begins with, behind white space.
func number(b []byte) (n int) {
	for i, c := range bytes.TrimLeft(b, " \t\r\n") {
		if c < '0' || c > '9' || i == 6 {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}
