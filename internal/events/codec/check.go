package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// decoder is a decoder of the library and its input.
type decoder struct {
	buf bytes.Buffer
	dec jsontext.Decoder
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// Check returns an error unless raw is exactly one JSON value, ErrTrailing if data follows it. No other
// function reads every byte of the syntax.
func Check(raw Raw) error {
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
		return ErrTrailing
	}
	return nil
}
