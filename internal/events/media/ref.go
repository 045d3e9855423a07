package media

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"compactd/internal/events/codec"
)

// Ref is what is kept of media that are too large to be recorded: their hash, and all that their
// price needs. It is written in the place of their data, as
// "sha256:1f…;type=image/png;bytes=5767168;width=1920;height=1080". See docs/format/wire.md, docs/adr/0047.
type Ref struct {
	Hash    string // SHA-256 of the bytes, in hexadecimal digits
	Type    string // such as image/png; "" where it is not known
	Bytes   int64
	Seconds int64 // of audio, rounded up; 0 where it is not known
	Shape
}

// String is the reference as it is written.
func (r *Ref) String() string {
	var b strings.Builder
	b.WriteString("sha256:" + r.Hash)
	if r.Type != "" {
		b.WriteString(";type=" + r.Type)
	}
	for _, f := range r.numbers() {
		if *f.value > 0 {
			fmt.Fprintf(&b, ";%s=%d", f.name, *f.value)
		}
	}
	return b.String()
}

// refNumber is a field of a reference.
type refNumber struct {
	name  string
	value *int64
}

// numbers lists the fields that are numbers, in their order.
func (r *Ref) numbers() []refNumber {
	w, h, p := int64(r.Width), int64(r.Height), int64(r.Pages)
	return []refNumber{{"bytes", &r.Bytes}, {"width", &w}, {"height", &h}, {"pages", &p}, {"seconds", &r.Seconds}}
}

// maxRef is more than a reference has behind its hash.
const maxRef = 1 << 10

// parse reads a reference. Fields that it does not know are passed over.
func parse(in codec.Inline) (r Ref, ok bool) {
	digits, fields := in.Hash()
	if digits == nil || len(fields) > maxRef {
		return r, false
	}
	r.Hash = string(digits)
	numbers := r.numbers()
	for field := range bytes.SplitSeq(fields, []byte(";")) {
		name, value, _ := strings.Cut(string(field), "=")
		if name == "type" {
			r.Type = value
		}
		n, err := strconv.ParseInt(value, 10, 64)
		for i := range numbers {
			if numbers[i].name == name && err == nil && n > 0 {
				*numbers[i].value = n
			}
		}
	}
	side := func(n *int64) uint16 { return uint16(min(*n, math.MaxUint16)) }
	r.Width, r.Height, r.Pages = side(numbers[1].value), side(numbers[2].value), side(numbers[3].value)
	if r.Width == 0 || r.Height == 0 {
		r.Width, r.Height = 0, 0
	}
	return r, true
}

// RefOf reads a JSON value that is a reference.
func RefOf(raw codec.Raw) (r Ref, ok bool) {
	if raw.Kind() != '"' || len(raw) > maxRef<<1 {
		return r, false
	}
	in, ok := codec.InlineOf(codec.TextBytes(raw))
	if !ok {
		return r, false
	}
	return parse(in)
}

// Refer returns the JSON string that refers to inline media; ok is false for any other value.
func Refer(raw codec.Raw) (ref codec.Raw, ok bool) {
	text, ok := textOf(raw)
	if !ok {
		return nil, false
	}
	in, ok := codec.InlineOf(text)
	if !ok {
		return nil, false
	}
	if digits, _ := in.Hash(); digits != nil {
		return nil, false
	}
	sum, size, ok := in.Sum()
	if !ok || size == 0 {
		return nil, false
	}
	b := input{in.Data}
	r := Ref{Hash: fmt.Sprintf("%x", sum), Type: b.kind(), Bytes: int64(size), Shape: b.shape()}
	if r.Type == "audio/wav" {
		r.Seconds = b.seconds()
	}
	return codec.Quote(string(in.Head) + r.String()), true
}

// kinds are the beginnings of files by their types.
var kinds = []struct {
	at    int
	begin string
	kind  string
}{
	{0, "\x89PNG\r\n\x1a\n", "image/png"},
	{0, "\xff\xd8\xff", "image/jpeg"},
	{0, "GIF8", "image/gif"},
	{8, "WEBP", "image/webp"},
	{0, "%PDF-", "application/pdf"},
	{8, "WAVE", "audio/wav"},
	{0, "ID3", "audio/mpeg"},
	{0, "\xff\xfb", "audio/mpeg"},
	{0, "OggS", "audio/ogg"},
	{0, "fLaC", "audio/flac"},
	{4, "ftypM4A", "audio/mp4"},
	{4, "ftyp", "video/mp4"},
	{0, "\x1aE\xdf\xa3", "video/webm"},
}

func (b input) kind() string {
	var head [16]byte
	n := b.read(head[:], 0)
	for _, k := range kinds {
		if bytes.HasPrefix(head[min(k.at, n):n], []byte(k.begin)) {
			return k.kind
		}
	}
	return ""
}

// seconds is how long a WAV file with its usual header is.
func (b input) seconds() int64 {
	var head [44]byte
	if b.read(head[:], 0) < len(head) || string(head[12:16]) != "fmt " {
		return 0
	}
	rate := int64(binary.LittleEndian.Uint32(head[28:])) // bytes of a second
	if rate == 0 {
		return 0
	}
	return (int64(b.size()) - int64(len(head)) + rate - 1) / rate
}

// Text describes the media for people and models, such as "[image 1920x1080, 5.5 MB, kept by hash
// sha256:1f…]".
func (r *Ref) Text() string {
	what := "file"
	switch kind, _, _ := strings.Cut(r.Type, "/"); {
	case kind == "image", kind == "audio", kind == "video":
		what = kind
	case r.Pages > 0, kind == "application":
		what = "document"
	case r.Width > 0:
		what = "image"
	}
	switch {
	case r.Width > 0:
		what += fmt.Sprintf(" %dx%d", r.Width, r.Height)
	case r.Pages > 0:
		what += fmt.Sprintf(" of %d pages", r.Pages)
	case r.Seconds > 0:
		what += fmt.Sprintf(" of %d s", r.Seconds)
	}
	if r.Bytes > 0 {
		tenths := (r.Bytes + 99_999) / 100_000
		what += fmt.Sprintf(", %d.%d MB", tenths/10, tenths%10)
	}
	return fmt.Sprintf("[%s, kept by hash sha256:%s]", what, r.Hash)
}
