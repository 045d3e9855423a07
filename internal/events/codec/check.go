package codec

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Check returns an error unless raw is exactly one JSON value, ErrTrailing if data follows it. No other
// function reads every byte of the syntax.
func Check(raw Raw) error {
	if raw.IsValid(lenient) {
		return nil
	}
	if _, err := jsontext.NewDecoder(bytes.NewReader(raw), lenient).ReadValue(); err != nil {
		return fmt.Errorf("check JSON: %w", err)
	}
	return ErrTrailing
}
