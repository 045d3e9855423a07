package events

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
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
	h := sha256.Sum256([]byte(name))
	return max(1, Key(binary.BigEndian.Uint64(h[:8])))
}

// OldHash is the identity of a turn's content as ledgers had it up to rules 3. Those that
// were stored then still have it for turns that may be sent again.
func (t *Scanned) OldHash() Key {
	in, err := DecodeTurn(t.data)
	if err != nil {
		return 0 // it was decoded before
	}
	h := sha256.New()
	var size [8]byte
	part := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	if in.ReplacesFrom > 0 {
		part(fmt.Appendf(nil, "%d %s", in.ReplacesFrom, in.ID))
	}
	part(in.System)
	part(in.Tools)
	part(in.Policy)
	if in.Model != nil {
		part(appendModel(nil, in.Model))
	}
	for _, m := range in.Messages {
		part(m)
	}
	return max(1, Key(binary.BigEndian.Uint64(h.Sum(nil))))
}
