package reference

import (
	"encoding/json"
	"fmt"

	"compactd/internal/events/codec"
)

// Fields is an answer, in the words of the record.
type Fields map[string]any

// Or is the value at p, if there is one.
func Or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// Plain returns a value as a reader of its JSON sees it.
func Plain(v any) any { return Parsed(encoded(v)) }

// Parsed is the value of a JSON text.
func Parsed[T ~[]byte](raw T) (v any) {
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		panic(fmt.Sprintf("%v in %.80s", err, raw))
	}
	return v
}

// At is a member of an answer.
func At(v any, name string) any {
	m, _ := v.(map[string]any)
	return m[name]
}

// Messages are those of an answer.
func Messages(v any) []any {
	out, _ := At(v, "messages").([]any)
	return out
}

// RawMessages are the messages of an answer, as JSON.
func RawMessages(v any) (out []codec.Raw) {
	for _, m := range Messages(v) {
		raw, err := codec.Marshal(m)
		if err != nil {
			panic(err)
		}
		out = append(out, raw)
	}
	return out
}

// AsJSON makes an answer of messages.
func AsJSON(raws []codec.Raw) []json.RawMessage {
	out := make([]json.RawMessage, len(raws))
	for i, r := range raws {
		out[i] = json.RawMessage(r)
	}
	return out
}
