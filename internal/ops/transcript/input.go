package transcript

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"compactd/internal/events/codec"
)

// Bounds of what is held in memory, in bytes.
const (
	maxLine     = 64 << 20
	maxDocument = 256 << 20
)

// errLong: a line or document is beyond its bound.
var errLong = errors.New("is too long to be read")

// input is one file to read.
type input struct {
	path     string
	stem     string              // name of the file without its ends, for sessions that have none
	thinking bool                // without a signature stays
	named    func(string) string // what a session may be called
	bad      func(error)         // is called with what is wrong, and left out
	wanted   func(string) bool   // reports whether a session of opencode is still to be read
	take     func(Session)       // gets each session
}

// parser reads the sessions of one file.
type parser func(in input, r io.Reader)

func (in input) parse(p parser) {
	f, err := open(in.path)
	if err != nil {
		in.bad(err)
		return
	}
	defer f.Close()
	p(in, f)
}

// file is one that is open, and its content without compression.
type file struct {
	io.Reader
	close []func()
}

// Close closes what open opened.
func (f *file) Close() {
	for _, end := range f.close {
		end()
	}
}

// Beginnings of compressed files: RFC 1952 and RFC 8878.
var (
	gzipped = []byte{0x1f, 0x8b}
	zipped  = []byte{0x28, 0xb5, 0x2f, 0xfd} // Codex keeps old rollouts so
)

// bom begins texts of some editors of Windows.
var bom = []byte("\ufeff")

// open opens a file. Its first bytes show whether it is compressed. Its errors do not name it.
func open(path string) (*file, error) {
	raw, err := os.Open(path)
	if why, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, why.Err
	}
	if err != nil {
		return nil, err
	}
	f := &file{close: []func(){func() { _ = raw.Close() }}}
	br := bufio.NewReader(raw)
	begin, _ := br.Peek(len(zipped))
	switch f.Reader = br; {
	case bytes.HasPrefix(begin, gzipped):
		f.Reader, err = gzip.NewReader(br)
	case bytes.HasPrefix(begin, zipped):
		var z *zstd.Decoder
		if z, err = zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxDocument)); err == nil {
			f.Reader, f.close = z, append([]func(){z.Close}, f.close...)
		}
	case bytes.HasPrefix(begin, bom):
		_, err = br.Discard(len(bom))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// stem is the name of a file without the ends of compression and the extension.
func stem(path string) string {
	name := plain(filepath.Base(path))
	if whole, ok := strings.CutSuffix(name, ".traj.json"); ok {
		return whole
	}
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// plain is a name without the end of a compression.
func plain(name string) string { return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst") }

// eachLine gives take the lines that are not blank, with their numbers from 1. One beyond
// most bytes comes as errLong; another error ends the lines. A line may be kept.
func eachLine(r io.Reader, most int, take func(n int, line []byte, err error)) {
	br := bufio.NewReaderSize(r, 1<<16)
	for n, ended := 1, false; !ended; n++ {
		line, err := readLine(br, most)
		ended = err != nil && !errors.Is(err, errLong)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			take(n, line, err)
		}
	}
}

// readLine returns io.EOF with the last line. Of one that is too long it skips the
// rest.
func readLine(br *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := br.ReadSlice('\n')
		if long = long || len(line)+len(part) > most; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong // the end comes again with the next call
		case err != nil:
			return line, err
		default:
			return line, nil
		}
	}
}

// atLine states where in the file an error is.
func atLine(n int, err error) error { return fmt.Errorf("line %d: %w", n, err) }

// eachLine gives take each line of r, and reports one that cannot be read, or that take refuses.
func (in input) eachLine(r io.Reader, take func(n int, data []byte) error) {
	eachLine(r, maxLine, func(n int, line []byte, err error) {
		if err == nil {
			err = take(n, line)
		}
		if err != nil {
			in.bad(atLine(n, err))
		}
	})
}

// eachValue is [input.eachLine] with the values that the lines encode.
func eachValue[T any](in input, r io.Reader, take func(n int, v *T) error) {
	in.eachLine(r, func(n int, data []byte) error {
		v := new(T)
		if err := codec.Unmarshal(data, v); err != nil {
			return err
		}
		return take(n, v)
	})
}

// decode reads all of r into v; it reports the error that keeps it from that.
func (in input) decode(r io.Reader, v any) bool {
	err := decodeDocument(r, v)
	if err != nil {
		in.bad(err)
	}
	return err == nil
}

func decodeDocument(r io.Reader, v any) error {
	data, err := document(r)
	if err != nil {
		return err
	}
	return codec.Unmarshal(data, v)
}

// decodeEach decodes the items of a list; one that cannot be read is reported and left out.
func decodeEach[T any](in input, list string, items []codec.Raw) (out []T) {
	for i, raw := range items {
		var v T
		if err := codec.Unmarshal(raw, &v); err != nil {
			in.bad(fmt.Errorf("%s[%d]: %w", list, i, err))
			continue
		}
		out = append(out, v)
	}
	return out
}

// joined returns the texts of items, a line each, without empty ones.
func joined[T any](items []T, text func(*T) string) string {
	var out []string
	for i := range items {
		if s := text(&items[i]); s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, "\n")
}

// document reads all of r.
func document(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocument {
		return nil, errLong
	}
	return data, nil
}
