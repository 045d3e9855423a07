package codec

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"

	"compactd/internal/events/weigh"
)

// Scan is what a [Walker] does beside reading when it scans: it checks every byte, as
// [Check] does, and writes the canonical form of what it reads. A Scan is for one
// goroutine, and is used again after Reset: then it costs no memory.
//
// A value has neither half surrogates nor bytes that are not UTF-8: see [Clean].
//
// The canonical form c1 is that of RFC 8785, but for five things. Numbers stay as they
// are written; of duplicate keys the last counts; half surrogates and bytes that are not
// UTF-8 are U+FFFD; a member that is null or an empty list is absent from an object that is
// read by its members (Object); and the reader of a dialect leaves members out (Omit), keeps
// them (Keep), replaces ids of calls by their order (CallID) and inline media by their hash
// (Media).
type Scan struct {
	out     []byte   // the canonical form
	members []member // of the objects that are open
	write   bool     // the canonical form is written
	omit    bool     // the value just read is left out
	keep    bool     // the value just read stays, whatever it is
	depth   int
	calls   [][]byte       // ids of calls in the order of their first use
	order   map[string]int // the same, where there are many
	spare   []byte
}

// member is a member of an open object: its key, and where its canonical form is,
// with a comma behind it.
type member struct {
	key      []byte
	from, to int
}

var (
	errDepth = errors.New("nests too deep")
	errText  = errors.New("not a JSON string")
)

// Walk returns a walker of a value that scans it.
func (s *Scan) Walk(raw Raw) Walker { return Walker{raw: raw, scan: s} }

// Reset prepares the next value.
func (s *Scan) Reset() {
	s.omit, s.keep, s.depth, s.members = false, false, 0, s.members[:0]
	s.Stop()
}

// Write begins a canonical form, with the next value, and the count of calls.
func (s *Scan) Write() {
	if cap(s.out) > manyBytes && len(s.out) < cap(s.out)/8 { // the one before last was large
		s.out = nil
	}
	s.write, s.out, s.calls, s.order = true, s.out[:0], s.calls[:0], nil
}

// manyBytes exceeds the canonical form of most messages.
const manyBytes = 64 << 10

// Stop ends what Write began.
func (s *Scan) Stop() { s.write = false }

// Canonical is the canonical form since Write. It is valid until the next one.
func (s *Scan) Canonical() []byte { return s.out }

// Measured is a value with the size of its text, if it is a scanned string, and its end in the input, if it
// was read.
type Measured struct {
	Raw  Raw
	Size weigh.Size
	End  int
}

// Text returns the next value, measured if it is a string and the walker scans.
func (w *Walker) Text() Measured {
	if w.scan == nil || w.Kind() != '"' {
		v := w.Value()
		return Measured{Raw: v, End: w.at}
	}
	q := weigh.String(w.raw[w.at:])
	return Measured{Raw: w.quoted(&q), Size: q.Size}
}

// Omit returns the next value, which the canonical form leaves out with its key.
func (w *Walker) Omit() Raw {
	v := w.Value()
	w.Omitted()
	return v
}

// Omitted leaves the value that was just read out of the canonical form, with its key.
func (w *Walker) Omitted() {
	if w.scan != nil {
		w.scan.omit = true
	}
}

// Keep keeps the value that was just read in the canonical form, also where it is null or an
// empty list: it is data, such as the result of a tool.
func (w *Walker) Keep() {
	if w.scan != nil {
		w.scan.keep = true
	}
}

// Position is the place of the next value in the canonical form, for Since and Replace.
func (w *Walker) Position() int {
	if w.scan == nil {
		return 0
	}
	return len(w.scan.out)
}

// Since is the canonical form since a position, nil if none is written. It is valid until the next value is
// read.
func (w *Walker) Since(from int) []byte {
	if w.scan == nil || !w.scan.write {
		return nil
	}
	return w.scan.out[from:]
}

// Replace replaces the canonical form since a position by b, which may be a part of it.
func (w *Walker) Replace(from int, b []byte) {
	if w.scan != nil && w.scan.write {
		w.scan.out = append(w.scan.out[:from], b...)
	}
}

// CallID returns the next value. In the canonical form it is the number of the call: 0 for the first id, 1
// for the next different one. An id without text stays.
func (w *Walker) CallID() Raw {
	if w.scan == nil || !w.scan.write {
		return w.Value()
	}
	from := len(w.scan.out)
	v := w.Value()
	if v.Kind() == '"' && len(v) > len(`""`) {
		w.scan.out = strconv.AppendInt(w.scan.out[:from], int64(w.scan.call(TextBytes(v))), 10)
	}
	return v
}

// fewCalls is the number of ids up to which a linear search is used.
const fewCalls = 16

func (s *Scan) call(id []byte) int {
	if s.order == nil {
		if i := slices.IndexFunc(s.calls, func(x []byte) bool { return bytes.Equal(x, id) }); i >= 0 {
			return i
		}
		if len(s.calls) < fewCalls {
			s.calls = append(s.calls, id)
			return len(s.calls) - 1
		}
		s.order = map[string]int{}
		for i, x := range s.calls {
			s.order[string(x)] = i
		}
	}
	i, ok := s.order[string(id)]
	if !ok {
		i = len(s.order)
		s.order[string(id)] = i
	}
	return i
}

// minMedia is the least length of base64 that counts as inline media: shorter strings may
// be words.
const minMedia = 64

// IsBytes reports whether the next value looks like a list of bytes, see [ByteList].
func (w *Walker) IsBytes() bool {
	kind := w.Kind()
	n, indexes, closing := ListHead(w.raw[w.at:])
	return n > 0 && (kind == '[' || indexes || len(closing) > 1)
}

// Media returns the next value, which may be inline media. In the canonical form they are their
// SHA-256: of a string that is base64, or a data URL of it; of a list of bytes; and of a
// reference, which has it.
func (w *Walker) Media() Raw {
	kind, start, from := w.Kind(), w.at, 0
	writes := w.scan != nil && w.scan.write
	if writes {
		from = len(w.scan.out)
	}
	var v Raw
	var list []byte
	if n := 0; kind == '{' || kind == '[' {
		if list, n = ByteList(w.raw[w.at:]); n > 0 {
			w.at += n
			v = w.from(start)
		}
	}
	if v == nil {
		v = w.Value()
	}
	if w.OnMedia != nil && w.err == nil {
		w.OnMedia(start, w.at)
	}
	if !writes {
		return v
	}
	text := TextBytes(v)
	if list != nil {
		text = base64.StdEncoding.AppendEncode(nil, list)
		w.scan.out = AppendQuote(w.scan.out[:from], text)
	}
	if hashed := w.scan.hashed(text); hashed != nil {
		w.scan.out = AppendQuote(w.scan.out[:from], hashed)
	}
	return v
}

// hashed is a text with the hash in the place of the media in it, nil for a text without any.
func (s *Scan) hashed(text []byte) []byte {
	in, ok := InlineOf(text)
	if !ok || len(in.Data) < minMedia {
		return nil
	}
	if digits, _ := in.Hash(); digits != nil {
		s.spare = append(append(append(s.spare[:0], in.Head...), hashScheme...), digits...)
		return s.spare
	}
	sum, _, ok := in.Sum()
	if !ok {
		return nil
	}
	s.spare = AppendHash(append(s.spare[:0], in.Head...), sum)
	return s.spare
}

// quoted moves behind the string at w, and writes its canonical form.
func (w *Walker) quoted(q *weigh.Quoted) Raw {
	if q.Len == 0 {
		return w.fail(errText)
	}
	s, raw := w.scan, w.raw[w.at:w.at+q.Len:w.at+q.Len]
	w.at += q.Len
	switch {
	case !s.write:
	case q.Long:
		s.out = AppendQuote(s.out, TextBytes(raw))
	default:
		s.out = append(s.out, raw...)
	}
	return raw
}

// scanValue is Value for a walker that scans.
func (w *Walker) scanValue() Raw {
	kind, start := w.Kind(), w.at
	switch kind {
	case '"':
		raw, _ := w.scanString()
		return raw
	case '{':
		return w.scanObject(func([]byte) { w.scanValue(); w.scan.keep = true })
	case '[':
		return w.scanArray(func() { w.scanValue() })
	case '0':
		w.at += numberLen(w.raw[w.at:])
	case 't':
		w.word("true")
	case 'f':
		w.word("false")
	case 'n':
		w.word("null")
	}
	if w.at == start { // no value begins here
		return w.fail(errSyntax)
	}
	if w.scan.write {
		w.scan.out = append(w.scan.out, w.raw[start:w.at]...)
	}
	return w.from(start)
}

// scanString reads the string at w. It is plain if it is of ASCII without escapes.
func (w *Walker) scanString() (raw Raw, plain bool) {
	n := weigh.Plain(w.raw[w.at:])
	if n == 0 {
		q := weigh.Skip(w.raw[w.at:])
		return w.quoted(&q), false
	}
	raw = w.raw[w.at : w.at+n : w.at+n]
	if w.at += n; w.scan.write {
		w.scan.out = append(w.scan.out, raw...)
	}
	return raw, true
}

// word moves behind a literal, if it is the next value.
func (w *Walker) word(s string) {
	if bytes.HasPrefix(w.raw[w.at:], []byte(s)) {
		w.at += len(s)
	}
}

// numberLen is the length of the number that b begins with, 0 for none.
func numberLen(b []byte) (n int) {
	digits := func() bool {
		from := n
		for n < len(b) && '0' <= b[n] && b[n] <= '9' {
			n++
		}
		return n > from
	}
	is := func(c byte) bool { return n < len(b) && b[n] == c }
	if is('-') {
		n++
	}
	switch {
	case is('0'):
		n++
	case !digits():
		return 0
	}
	if is('.') {
		if n++; !digits() {
			return 0
		}
	}
	if is('e') || is('E') {
		if n++; is('+') || is('-') {
			n++
		}
		if !digits() {
			return 0
		}
	}
	return n
}
