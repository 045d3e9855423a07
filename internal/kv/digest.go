package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// digest is the sum of the hashes of a set of rows, modulo 2^128. A sum does not
// depend on the order, can be kept up to date row by row, and unlike an exclusive
// or does not miss a row that turns up twice.
type digest struct{ hi, lo uint64 }

func (d digest) add(e digest) digest {
	lo, carry := bits.Add64(d.lo, e.lo, 0)
	hi, _ := bits.Add64(d.hi, e.hi, carry)
	return digest{hi, lo}
}

func (d digest) sub(e digest) digest {
	lo, borrow := bits.Sub64(d.lo, e.lo, 0)
	hi, _ := bits.Sub64(d.hi, e.hi, borrow)
	return digest{hi, lo}
}

// hashRow hashes a row by its key, length and checksum, so that the old version
// of a row is taken out of a digest without reading its data. value has its checksum.
func hashRow(key, value []byte) digest {
	var buf [maxKeyBytes + 8]byte
	b := append(buf[:0], key...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(value)))
	b = append(b, value[len(value)-sumBytes:]...)
	h := sha256.Sum256(b)
	return digest{hi: binary.LittleEndian.Uint64(h[:]), lo: binary.LittleEndian.Uint64(h[8:])}
}

// tally is what an open store remembers of one session: how many rows it has, in
// the low bits, and a sum over their hashes above. Tallies add up in one piece.
type tally uint64

const tallyRows = 1<<20 - 1 // a ledger has far fewer rows

func (d digest) tally() tally { return tally(d.hi&^tallyRows | 1) }

func (t tally) rows() int { return int(t & tallyRows) }
