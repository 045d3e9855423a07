package events

import "iter"

// NewInvalid returns an [*Invalid] with one problem.
func NewInvalid(c Code, field, text string) *Invalid { return invalid(c, field, text) }

// Members lists the keys of a JSON object in their order, duplicates included.
// Anything but an object has none.
func Members(raw Raw) iter.Seq2[string, Raw] {
	return func(yield func(string, Raw) bool) {
		var room [fewMembers]member
		ms, err := appendMembers(room[:0], raw)
		if err != nil {
			return
		}
		for _, m := range ms {
			if !yield(m.name, m.value) {
				return
			}
		}
	}
}

// Text returns the text of a JSON string; ok is false for any other value.
func Text(raw Raw) (s string, ok bool) { return unquote(raw) }
