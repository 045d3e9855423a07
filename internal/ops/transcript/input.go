package transcript

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
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
	stem     string              // name of the file without its ends, for sessions that have none
	thinking bool                // without a signature stays
	named    func(string) string // what a session may be called
	bad      func(error)         // is called with what is wrong, and left out
}

// parser reads the sessions of one file.
type parser func(in input, r io.Reader) []Session

func (in input) parse(path string, p parser) []Session {
	f, err := os.Open(path)
	if err != nil {
		in.bad(err)
		return nil
	}
	defer f.Close()
	r, err := unzip(path, f)
	if err != nil {
		in.bad(err)
		return nil
	}
	return p(in, r)
}

func unzip(path string, f io.Reader) (io.Reader, error) {
	if !strings.HasSuffix(path, ".gz") {
		return f, nil
	}
	return gzip.NewReader(f)
}

// stem is the name of a file without .gz and the extension.
func stem(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".gz")
	if whole, ok := strings.CutSuffix(name, ".traj.json"); ok {
		return whole
	}
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// lines yields the lines that are not blank, with their numbers from 1. One beyond
// most bytes comes as errLong; another error ends the lines. A line may be kept.
func lines(r io.Reader, most int) iter.Seq2[int, result] {
	return func(yield func(int, result) bool) {
		br := bufio.NewReaderSize(r, 1<<16)
		for n := 1; ; n++ {
			line, err := readLine(br, most)
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLong) {
				yield(n, result{err: err})
				return
			}
			if errors.Is(err, errLong) || len(bytes.TrimSpace(line)) > 0 {
				got := result{line: line}
				if errors.Is(err, errLong) {
					got = result{err: errLong}
				}
				if !yield(n, got) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
		}
	}
}

// result is a line, or why there is none.
type result struct {
	line []byte
	err  error
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
