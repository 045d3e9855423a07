package dialect

import (
	"bytes"
	"slices"

	"compactd/internal/events/codec"
)

// marked are the members of messages, blocks and tools in which marks are, by themselves or
// further inside. A tool's arguments are not searched.
var marked = []string{"content", "tool_calls", "tools", "toolResult", "providerOptions", "anthropic", "bedrock", "openrouter", "openaiCompatible"}

// cacheStart begins the name of every mark, in JSON.
var cacheStart = []byte(`"cache`)

// Marks counts the marks of a message, of a system prompt or of tools.
func Marks(raw codec.Raw) int {
	_, _, n := NewestMarks(raw, 0)
	return n
}

// NewestMarks returns a message with the last of its marks, at most keep of them, with the number of further
// marks allowed, and the number of dropped ones.
func NewestMarks(raw codec.Raw, keep int) (out codec.Raw, left, dropped int) {
	k := keeper{left: keep}
	out = k.value(raw)
	if k.dropped == 0 {
		return raw, k.left, 0
	}
	return out, k.left, k.dropped
}

// keeper walks over the marks of a message from its end on.
type keeper struct{ left, dropped int }

func (k *keeper) value(raw codec.Raw) codec.Raw {
	if !bytes.Contains(raw, cacheStart) {
		return raw
	}
	switch raw.Kind() {
	case '[':
		return k.elements(raw)
	case '{':
		return k.members(raw)
	default:
		return raw
	}
}

func (k *keeper) elements(raw codec.Raw) codec.Raw {
	list, err := codec.ReadArray(raw)
	if err != nil {
		return raw
	}
	was, left := *k, make([]codec.Raw, 0, len(list))
	for _, x := range slices.Backward(list) {
		before := k.dropped
		if x = k.value(x); k.dropped == before || string(x) != "{}" { // a cachePoint is a block of its own
			left = append(left, x)
		}
	}
	if k.dropped == was.dropped {
		return raw
	}
	if len(left) == 0 {
		*k = was
		return raw
	}
	slices.Reverse(left)
	return codec.WriteArray(left)
}

func (k *keeper) members(raw codec.Raw) codec.Raw {
	members, err := codec.ReadObject(raw)
	if err != nil {
		return raw
	}
	before, left := k.dropped, make([]codec.Member, 0, len(members))
	own := func(m codec.Member) bool { return isCacheMark(m.Name) && m.Value.Kind() == '{' }
	for _, m := range members { // a mark of an object is behind those in it
		if !own(m) {
			continue
		}
		if k.left > 0 {
			k.left--
		} else {
			k.dropped++
		}
	}
	dropsOwn := k.dropped > before
	for _, m := range slices.Backward(members) {
		switch {
		case dropsOwn && own(m):
			continue
		case slices.Contains(marked, m.Name):
			m.Value = k.value(m.Value)
		}
		left = append(left, m)
	}
	if k.dropped == before {
		return raw
	}
	slices.Reverse(left)
	return codec.WriteObject(left)
}
