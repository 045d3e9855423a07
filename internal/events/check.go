package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// decoder is one of the library's with what it reads from.
type decoder struct {
	buf bytes.Buffer
	dec jsontext.Decoder
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// check returns an error for what is not exactly one JSON value, errTrailing where
// something follows one. Nothing else looks at every byte of an event's syntax.
func check(raw Raw) error {
	d := decoders.Get().(*decoder)
	defer func() {
		d.buf = bytes.Buffer{} // the input is not kept alive
		d.dec.Reset(&d.buf)
		decoders.Put(d)
	}()
	d.buf = *bytes.NewBuffer(raw)
	d.dec.Reset(&d.buf, lenient)
	if _, err := d.dec.ReadValue(); err != nil {
		return fmt.Errorf("check JSON: %w", err)
	}
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}
