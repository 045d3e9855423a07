package dialect

import (
	"bytes"
	"slices"

	"compactd/internal/events/codec"
)

// markNames are how the dialects call a mark for the provider's cache: Anthropic and gateways,
// the AI SDK, Bedrock.
var markNames = []string{CacheControl, "cacheControl", "cachePoint"}

// marked are the members of messages, blocks and tools in which marks are, by themselves or
// further inside. A tool's arguments are not searched.
var marked = []string{"content", "tool_calls", "tools", "toolResult", "providerOptions", "anthropic", "bedrock", "openrouter", "openaiCompatible"}

// Marks counts the marks of a message, of a system prompt or of tools.
func Marks(raw Raw) int {
	_, n := WithoutMarks(raw)
	return n
}

// WithoutMarks returns a message without its marks, and how many these were.
func WithoutMarks(raw Raw) (out Raw, n int) {
	if !slices.ContainsFunc(markNames, func(name string) bool { return bytes.Contains(raw, []byte(name)) }) {
		return raw, 0
	}
	switch raw.Kind() {
	case '[':
		return elementsWithoutMarks(raw)
	case '{':
		return membersWithoutMarks(raw)
	default:
		return raw, 0
	}
}

func elementsWithoutMarks(raw Raw) (out Raw, n int) {
	list, err := codec.ReadArray(raw)
	if err != nil {
		return raw, 0
	}
	left := make([]Raw, 0, len(list))
	for _, x := range list {
		kept, k := WithoutMarks(x)
		if n += k; k == 0 || string(kept) != "{}" { // a cachePoint is a block of its own
			left = append(left, kept)
		}
	}
	if n == 0 || len(left) == 0 {
		return raw, 0
	}
	return codec.WriteArray(left), n
}

func membersWithoutMarks(raw Raw) (out Raw, n int) {
	members, err := codec.ReadObject(raw)
	if err != nil {
		return raw, 0
	}
	left := make([]codec.Member, 0, len(members))
	for _, m := range members {
		switch {
		case slices.Contains(markNames, m.Name) && m.Value.Kind() == '{':
			n++
			continue
		case slices.Contains(marked, m.Name):
			value, k := WithoutMarks(m.Value)
			m.Value, n = value, n+k
		}
		left = append(left, m)
	}
	if n == 0 {
		return raw, 0
	}
	return codec.WriteObject(left), n
}
