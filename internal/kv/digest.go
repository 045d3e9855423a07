package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// digest is the sum of the hashes of a set of rows, modulo 2^128. A sum does not depend on the
// order and can be updated row by row. Unlike an exclusive or it counts a row that occurs twice.
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

// hashRow hashes a row by its key, length and checksum. So an old version leaves a digest
// without a read of its data. value ends with its checksum.
func hashRow(key, value []byte) digest {
	var buf [maxKeyBytes + 8]byte
	b := append(buf[:0], key...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(value)))
	b = append(b, value[len(value)-sumBytes:]...)
	h := sha256.Sum256(b)
	return digest{hi: binary.LittleEndian.Uint64(h[:]), lo: binary.LittleEndian.Uint64(h[8:])}
}

// tally summarizes the rows of one session in an open store: the number of rows in the low bits,
// the sum of their hashes in the high bits. One addition adds both.
type tally uint64

const tallyRows = 1<<20 - 1 // mask of the number; a ledger has far fewer rows

func (d digest) tally() tally { return tally(d.hi&^tallyRows | 1) }

func (t tally) rows() int { return int(t & tallyRows) }
