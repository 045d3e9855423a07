package dialect

import (
	"bytes"

	"compactd/internal/events/codec"
)

// Members in which two equal messages of a session may differ, beside those that package codec
// leaves out. See docs/format/identity.md.

// isCacheMark reports whether a member marks what a provider is to cache: agents move marks
// with each call.
func isCacheMark[S string | []byte](key S) bool {
	switch string(key) {
	case CacheControl, "cacheControl", "cachePoint": // of Anthropic and gateways, the AI SDK, Bedrock
		return true
	}
	return false
}

// rest reads a member of a block, or of a call, that its dialect does not interpret.
func (w *Reader) rest(key []byte) {
	if isCacheMark(key) {
		w.Omit()
	} else {
		w.Value()
	}
}

// flag reads a value whose default is false.
func (w *Reader) flag() codec.Raw {
	v := w.Value()
	if v.Kind() == 'f' {
		w.Omitted()
	}
	return v
}

// data reads a value of a model or a tool, which is kept whole.
func (w *Reader) data() codec.Raw {
	v := w.Value()
	w.Keep()
	return v
}

// options reads what messages and parts of the AI SDK have for providers.
func (w *Reader) options() {
	from := w.Position()
	w.fields(func([]byte) {
		from := w.Position()
		w.fields(w.rest)
		w.omitEmpty(from)
	})
	w.omitEmpty(from)
}

// omitEmpty omits an object without remaining members.
func (w *Reader) omitEmpty(from int) {
	if string(w.Since(from)) == "{}" {
		w.Omitted()
	}
}

// Setting reads a system prompt, tools or a policy for its identity: one text block is the same
// as its text, and marks of a cache are no content.
func (w *Reader) Setting() {
	from := w.Position()
	if w.Kind() != '[' {
		w.Value()
		return
	}
	w.Array(func() {
		from := w.Position()
		w.fields(func(key []byte) {
			if isOptions(key) {
				w.options()
			} else {
				w.rest(key)
			}
		})
		w.omitEmpty(from)
	})
	w.sameContent(from)
}

// isOptions reports whether a member is for providers: see options.
func isOptions(key []byte) bool {
	switch string(key) {
	case "providerOptions", "providerMetadata", "experimental_providerMetadata":
		return true
	}
	return false
}

// sameContent makes one text block with nothing beside its text the same content as that text, and omits an
// empty one. A block with an empty text stays: the message has a part for it, and none without content.
func (w *Reader) sameContent(from int) {
	if rest, ok := bytes.CutPrefix(w.Since(from), []byte(`[{"text":`)); ok {
		block := codec.Walk(rest)
		if text := block.Value(); text.Kind() == '"' && len(text) > len(`""`) {
			switch string(rest[block.Offset():]) {
			case `,"type":"text"}]`, `,"type":"input_text"}]`, `,"type":"output_text"}]`:
				w.Replace(from, text)
			}
		}
	}
	if string(w.Since(from)) == `""` {
		w.Omitted()
	}
}
