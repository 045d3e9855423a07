package tags

import "compactd/internal/events/codec"

// Tag is one of the two ways to hide messages.
type Tag struct {
	parent   string                                // member of a hidden message: the id of its replacement
	id       string                                // member of the replacement
	replaces func(metadata, marker codec.Raw) bool // whether a message is a replacement
}

// A summary replaces condensed messages, a truncation notice truncated ones.
var (
	Condensed = Tag{"condenseParent", "condenseId", func(metadata, _ codec.Raw) bool {
		ms, _ := codec.ReadObject(metadata)
		return codec.Lookup(ms, "isSummary").Kind() == 't'
	}}
	Truncated = Tag{"truncationParent", "truncationId", func(_, marker codec.Raw) bool { return marker.Kind() == 't' }}
)

// Effective returns the messages that no tag hides: what a model is given.
func Effective(history []codec.Raw) []codec.Raw {
	out := make([]codec.Raw, 0, len(history))
	for _, m := range history {
		if !Condensed.hides(m) && !Truncated.hides(m) {
			out = append(out, m)
		}
	}
	return out
}

// Hide tags the messages from ≤ i < to as hidden behind id; bounds beyond the
// history are moved to its ends. Messages that were hidden behind another id of the tag are
// behind this one then.
func (t Tag) Hide(history []codec.Raw, from, to int, id string) []codec.Raw {
	out := append([]codec.Raw(nil), history...)
	for i := max(from, 0); i < min(to, len(out)); i++ {
		if tagged, err := codec.WithMember(out[i], t.parent, codec.Quote(id)); err == nil {
			out[i] = tagged
		}
	}
	return out
}

// Show makes what is hidden behind id visible again, and takes away the message
// that replaced it.
func (t Tag) Show(history []codec.Raw, id string) []codec.Raw {
	out := make([]codec.Raw, 0, len(history))
	for _, raw := range history {
		ms, err := codec.ReadObject(raw)
		switch {
		case err != nil:
			out = append(out, raw)
		case equals(codec.Lookup(ms, t.id), id) && t.replaces(codec.Lookup(ms, "metadata"), codec.Lookup(ms, "isTruncationMarker")):
		case equals(codec.Lookup(ms, t.parent), id):
			shown := make([]codec.Member, 0, len(ms))
			for _, m := range ms {
				if m.Name != t.parent {
					shown = append(shown, m)
				}
			}
			out = append(out, codec.WriteObject(shown))
		default:
			out = append(out, raw)
		}
	}
	return out
}

func (t Tag) hides(raw codec.Raw) bool {
	ms, _ := codec.ReadObject(raw)
	parent, _ := codec.Text(codec.Lookup(ms, t.parent))
	return parent != ""
}

// equals reports whether a value is that string.
func equals(raw codec.Raw, s string) bool {
	v, ok := codec.Text(raw)
	return ok && v == s
}
