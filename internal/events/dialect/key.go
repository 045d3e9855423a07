package dialect

import (
	"crypto/sha256"
	"encoding/binary"

	"compactd/internal/events/traits"
)

// Key represents a name (a call id, a tool, a path) where only equality counts:
// the first 8 bytes of its SHA-256, so that no history can forge a collision.
// The zero Key is no name.
type Key uint64

// KeyOf returns the key of a name.
func KeyOf[S string | []byte](name S) Key {
	if len(name) == 0 {
		return 0
	}
	return keyOf(sha256.Sum256([]byte(name)))
}

func keyOf(sum [sha256.Size]byte) Key { return max(1, Key(binary.BigEndian.Uint64(sum[:8]))) }

// classBits of the key of a call's id are its class: they show whether a provider accepts the id, without its
// text.
const classBits = traits.IDClasses - 1

// CallKeyOf is [KeyOf] the id of a call.
func CallKeyOf[S string | []byte](id S) Key {
	if len(id) == 0 {
		return 0
	}
	return max(KeyOf(id), traits.IDClasses)&^classBits | Key(traits.ClassOf(id))
}

// IDClass is the class of a call's id.
func (k Key) IDClass() traits.IDClass { return traits.IDClass(k & classBits) }
