package media

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strconv"

	"compactd/internal/events/codec"
)

// ErrTooLarge: a body has too many bytes besides its media.
var ErrTooLarge = errors.New("has more bytes than it may have, not counting its media")

// mediaMembers are the members that hold inline media in any dialect.
var mediaMembers = []string{"data", "url", "image_url", "file_data", "bytes", "image", "result"}

const longMember = 16 // more than any of them has, with its quotes

// leastHashed is the least size of media that are replaced when a body is too large, as JSON.
const leastHashed = 8 << 10

// foldSlack is the part of the bound that is free once media were replaced: each time all that
// was read is moved.
const foldSlack = 4

// ReadJSON reads JSON of any size into at most most bytes. Where it has more, references stand in
// the place of media, the oldest first, and lists of bytes become base64: the identity of its
// messages stays. It holds not much more than most bytes at any time. Its errors are [ErrTooLarge]
// and those of r.
func ReadJSON(r io.Reader, most int) ([]byte, error) {
	f := folding{in: bufio.NewReaderSize(r, 64<<10), most: most}
	for {
		b, err := f.in.Peek(1)
		if errors.Is(err, io.EOF) {
			return f.out, nil
		}
		if err == nil {
			err = f.next(b[0])
		}
		if err != nil {
			return nil, err
		}
	}
}

// folding is a body that is being read.
type folding struct {
	in   *bufio.Reader
	most int
	out  []byte
	all  []mediaSpan // media in out that are there, in their order
	last []byte      // the string read last, where it is short
	key  bool        // it names the next value, which may be media
}

// mediaSpan is out[from:to]; to is 0 while it is being read.
type mediaSpan struct{ from, to int }

// next reads a string, a list of bytes, or one byte of anything else.
func (f *folding) next(c byte) error {
	switch c {
	case '"':
		return f.text()
	case ':':
		f.key = slices.Contains(mediaMembers, string(f.last))
	case '{', '[':
		if f.key {
			f.key = false
			if done, err := f.list(); done || err != nil {
				return err
			}
		}
	case ' ', '\n', '\r', '\t':
	default:
		f.key, f.last = false, nil
	}
	if _, err := f.in.Discard(1); err != nil {
		return err
	}
	return f.put([]byte{c})
}

// text reads a string.
func (f *folding) text() error {
	isMedia, from := f.key, len(f.all)
	f.key, f.last = false, nil
	if isMedia {
		f.all = append(f.all, mediaSpan{from: len(f.out)})
	}
	start := true
	for {
		if _, err := f.in.Peek(1); err != nil {
			return noEOF(err)
		}
		b, _ := f.in.Peek(f.in.Buffered())
		n, ends := stringEnd(b, start)
		if n == 0 { // a backslash at the end of what is buffered
			var err error
			if b, err = f.in.Peek(2); err != nil {
				return noEOF(err)
			}
			n = 2
		}
		if start && ends && n <= longMember {
			f.last = append(f.last, b[1:n-1]...)
		}
		if err := f.put(b[:n]); err != nil {
			return err
		}
		if _, err := f.in.Discard(n); err != nil {
			return err
		}
		if start = false; ends {
			break
		}
	}
	if isMedia && from < len(f.all) {
		f.close()
	}
	return nil
}

// close notes the end of the media that were read last.
func (f *folding) close() {
	last := &f.all[len(f.all)-1]
	if last.to = len(f.out); last.to-last.from < leastHashed {
		f.all = f.all[:len(f.all)-1]
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// stringEnd returns how much of b belongs to a string, and whether it ends there. start: b has its
// opening quote. n is 0 where b is a backslash alone.
func stringEnd(b []byte, start bool) (n int, ends bool) {
	if start {
		n = 1
	}
	for n < len(b) {
		i := bytes.IndexByte(b[n:], '"')
		if i < 0 {
			i = len(b) - n
		}
		slash := bytes.IndexByte(b[n:n+i], '\\')
		switch {
		case slash < 0 && n+i < len(b):
			return n + i + 1, true
		case slash < 0:
			return len(b), false
		case n+slash+2 > len(b):
			return n + slash, false
		}
		n += slash + 2
	}
	return n, false
}

// list reads a list of bytes as base64. done is false where the value is none: nothing of it is
// read then.
func (f *folding) list() (done bool, err error) {
	b, _ := f.in.Peek(codec.ListMargin)
	n, indexes, closing := codec.ListHead(b)
	if n == 0 || n == len(b) {
		return false, nil
	}
	if m, _ := codec.ListElement(b[n:], 0, indexes); m == 0 {
		return false, nil
	}
	head := append([]byte(nil), b[:n]...)
	if _, err := f.in.Discard(n); err != nil {
		return false, err
	}
	f.all = append(f.all, mediaSpan{from: len(f.out)})
	if err := f.put([]byte{'"'}); err != nil {
		return false, err
	}
	var group []byte
	for i := 0; ; i++ {
		b, _ := f.in.Peek(codec.ListMargin)
		if n := codec.ListEnd(b, closing); n > 0 && i > 0 {
			if err := f.put(append(base64.StdEncoding.AppendEncode(nil, group), '"')); err != nil {
				return false, err
			}
			f.close()
			_, err := f.in.Discard(n)
			return true, err
		}
		n, c := codec.ListElement(b, i, indexes)
		if n == 0 {
			return true, f.restore(head, indexes, group)
		}
		if group = append(group, c); len(group) == listGroup {
			if err := f.put(base64.StdEncoding.AppendEncode(nil, group)); err != nil {
				return false, err
			}
			group = group[:0]
		}
		if _, err := f.in.Discard(n); err != nil {
			return false, err
		}
	}
}

// listGroup is how many bytes of a list are encoded at once: no padding is between them.
const listGroup = 3 << 10

// restore writes a list that turned out to have other elements as it was, and what follows is
// read as any JSON.
func (f *folding) restore(head []byte, indexes bool, group []byte) error {
	last := f.all[len(f.all)-1]
	f.all = f.all[:len(f.all)-1]
	data, err := base64.StdEncoding.DecodeString(string(f.out[last.from+1:]))
	if err != nil {
		return err
	}
	f.out = append(f.out[:last.from], head...)
	for i, c := range append(data, group...) {
		var element []byte
		if i > 0 {
			element = append(element, ',')
		}
		if indexes {
			element = append(strconv.AppendInt(append(element, '"'), int64(i), 10), `":`...)
		}
		if err := f.put(strconv.AppendInt(element, int64(c), 10)); err != nil {
			return err
		}
	}
	return nil
}

// put appends what was read, and makes room where it is too much.
func (f *folding) put(b []byte) error {
	if len(f.out)+len(b) > f.most {
		if f.fold(); len(f.out)+len(b) > f.most {
			return ErrTooLarge
		}
	}
	if n := len(f.out) + len(b); n > cap(f.out) {
		f.out = append(make([]byte, 0, min(max(2*n, 64<<10), f.most)), f.out...)
	}
	f.out = append(f.out, b...)
	return nil
}

// fold replaces the oldest media, until some of the bound is free.
func (f *folding) fold() {
	want := len(f.out) - (f.most - f.most/foldSlack)
	to, at, freed := 0, 0, 0 // f.out[:to] is done, f.out[at:] is to come
	for freed < want && len(f.all) > 0 && f.all[0].to > 0 {
		m := f.all[0]
		f.all = f.all[1:]
		ref, ok := Refer(f.out[m.from:m.to])
		if !ok || len(ref) >= m.to-m.from {
			continue
		}
		to += copy(f.out[to:], f.out[at:m.from])
		to += copy(f.out[to:], ref)
		at, freed = m.to, freed+m.to-m.from-len(ref)
	}
	if at == 0 {
		return
	}
	to += copy(f.out[to:], f.out[at:])
	f.out = f.out[:to]
	for i := range f.all {
		f.all[i].from -= freed
		if f.all[i].to > 0 {
			f.all[i].to -= freed
		}
	}
}
