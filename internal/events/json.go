package events

import (
	"iter"

	"compactd/internal/events/codec"
)

// The functions of package codec that callers need to read and write payloads.

// Raw is one JSON value as it came.
type Raw = codec.Raw

// Marshal is [codec.Marshal].
func Marshal(v any) ([]byte, error) { return codec.Marshal(v) }

// Unmarshal is [codec.Unmarshal].
func Unmarshal(data []byte, v any) error { return codec.Unmarshal(data, v) }

// UnmarshalLenient is [codec.UnmarshalLenient].
func UnmarshalLenient(data []byte, v any) error { return codec.UnmarshalLenient(data, v) }

// UnmarshalStrict is [codec.UnmarshalStrict].
func UnmarshalStrict(data []byte, v any) error { return codec.UnmarshalStrict(data, v) }

// Members is [codec.Members].
func Members(raw Raw) iter.Seq2[string, Raw] { return codec.Members(raw) }

// Text is [codec.Text].
func Text(raw Raw) (s string, ok bool) { return codec.Text(raw) }

// Pieces is [codec.Pieces].
func Pieces(quoted Raw) iter.Seq[[]byte] { return codec.Pieces(quoted) }

// Units is [codec.Units].
func Units(s string) int { return codec.Units(s) }
