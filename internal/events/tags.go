package events

import "compactd/internal/events/codec"

// Tag is one of the two ways in which NeuroLink hides messages of a stored
// history: nothing is deleted, what is hidden names the message that stands for
// it. Effective, Hide and Show keep the bytes of every message they do not change.
type Tag struct {
	parent string // member of a hidden message: the id of what stands for it
	id     string // member of what stands for it
	stands func(metadata, marker Raw) bool
}

// The tags. A summary stands for condensed messages, a marker for truncated ones.
var (
	Condensed = Tag{"condenseParent", "condenseId", func(metadata, _ Raw) bool { return isTrue(memberOf(metadata, "isSummary")) }}
	Truncated = Tag{"truncationParent", "truncationId", func(_, marker Raw) bool { return isTrue(marker) }}
)

// Effective returns the messages that no tag hides: what a model is given.
func Effective(history []Raw) []Raw {
	out := make([]Raw, 0, len(history))
	for _, m := range history {
		if !Condensed.hides(m) && !Truncated.hides(m) {
			out = append(out, m)
		}
	}
	return out
}

// Hide tags the messages from ≤ i < to as hidden behind id; borders beyond the
// history are taken to its ends. What was hidden behind another id of the tag is
// now behind this one.
func (t Tag) Hide(history []Raw, from, to int, id string) []Raw {
	out := append([]Raw(nil), history...)
	for i := max(from, 0); i < min(to, len(out)); i++ {
		if tagged, err := codec.WithMember(out[i], t.parent, codec.Quote(id)); err == nil {
			out[i] = tagged
		}
	}
	return out
}

// Show makes what is hidden behind id visible again, and takes away the message
// that stood for it.
func (t Tag) Show(history []Raw, id string) []Raw {
	out := make([]Raw, 0, len(history))
	for _, raw := range history {
		ms, err := codec.ReadObject(raw)
		switch {
		case err != nil:
			out = append(out, raw)
		case says(codec.Lookup(ms, t.id), id) && t.stands(codec.Lookup(ms, "metadata"), codec.Lookup(ms, "isTruncationMarker")):
		case says(codec.Lookup(ms, t.parent), id):
			out = append(out, codec.WriteObject(without(ms, t.parent)))
		default:
			out = append(out, raw)
		}
	}
	return out
}

func (t Tag) hides(raw Raw) bool { return stringOf(memberOf(raw, t.parent)) != "" }

// memberOf returns the member of an object, nil when it is absent or raw is none.
func memberOf(raw Raw, name string) Raw {
	ms, err := codec.ReadObject(raw)
	if err != nil {
		return nil
	}
	return codec.Lookup(ms, name)
}

// without returns members less those of a name.
func without(ms []codec.Member, name string) []codec.Member {
	out := make([]codec.Member, 0, len(ms))
	for _, m := range ms {
		if m.Name != name {
			out = append(out, m)
		}
	}
	return out
}

// stringOf is the value of a string, "" for anything else.
func stringOf(raw Raw) string {
	s, _ := codec.Text(raw)
	return s
}

// says reports whether a value is that string.
func says(raw Raw, s string) bool {
	v, ok := codec.Text(raw)
	return ok && v == s
}

func isTrue(raw Raw) bool { return raw.Kind() == 't' }
