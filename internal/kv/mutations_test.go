package kv

import (
	"bytes"
	"math/rand/v2"
)

// mutation damages a file. old is what the file was some checkpoints ago.
type mutation func(r *rand.Rand, b, old []byte) []byte

var mutations = map[string]mutation{
	// The three of docs/reliability.md, row P11.
	"flip": func(r *rand.Rand, b, _ []byte) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	},
	"zero": func(r *rand.Rand, b, _ []byte) []byte {
		clear(pageOf(b, r.IntN(len(b)/pageSize)))
		return b
	},
	"truncate": func(r *rand.Rand, b, _ []byte) []byte { return b[:r.IntN(len(b))] },

	// The file ends within the page that names the buckets: what a mapping shows of
	// it behind the end is zeros, and bbolt finds no bucket then, and no error.
	"cut root": func(r *rand.Rand, b, _ []byte) []byte {
		p, err := openPages(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			panic(err) // of a file that is not damaged
		}
		return b[:int(p.root)*pageSize+1+r.IntN(pageSize-1)]
	},

	// Where it hurts most: ids, flags, counts, positions, references, meta pages.
	"header": func(r *rand.Rand, b, _ []byte) []byte {
		p := pageOf(b, r.IntN(len(b)/pageSize))
		n := pageHeader + min(int(native.Uint16(p[10:])), 20)*elementSize
		p[r.IntN(min(n, len(p)))] ^= 1 << r.IntN(8)
		return b
	},
	"branch": func(r *rand.Rand, b, _ []byte) []byte {
		p := anyPage(r, b, flagBranch)
		p[r.IntN(pageSize)] ^= 1 << r.IntN(8)
		return b
	},
	// The end of a page is lost, and everything else about it is right.
	"count": func(r *rand.Rand, b, _ []byte) []byte {
		p := anyPage(r, b, uint16(1+r.IntN(2)))
		n := native.Uint16(p[10:])
		native.PutUint16(p[10:], n-min(n, uint16(1+r.IntN(3))))
		return b
	},
	// A branch names a page that begins before it does. That is in order, every key
	// is found, and the next write goes wrong.
	"separator": func(r *rand.Rand, b, _ []byte) []byte {
		p := anyPage(r, b, flagBranch)
		at := pageHeader + r.IntN(int(native.Uint16(p[10:])))*elementSize
		p[at+int(native.Uint32(p[at:])+native.Uint32(p[at+4:]))-1]--
		return b
	},
	"meta": func(r *rand.Rand, b, _ []byte) []byte {
		pageOf(b, r.IntN(2))[r.IntN(pageHeader+metaBytes)] ^= 1 << r.IntN(8)
		return b
	},
	// A write that the disk lost, went astray, or was made twice.
	"stale": func(r *rand.Rand, b, old []byte) []byte {
		i := r.IntN(len(old) / pageSize)
		copy(pageOf(b, i), pageOf(old, i))
		return b
	},
	"stale tail": func(r *rand.Rand, b, old []byte) []byte {
		i := r.IntN(len(old)/pageSize) * pageSize
		copy(b[i:], old[i:])
		return b
	},
	"swap": func(r *rand.Rand, b, _ []byte) []byte {
		p, q := pageOf(b, r.IntN(len(b)/pageSize)), pageOf(b, r.IntN(len(b)/pageSize))
		keep := bytes.Clone(p)
		copy(p, q)
		copy(q, keep)
		return b
	},
	"noise": func(r *rand.Rand, b, _ []byte) []byte {
		p := pageOf(b, r.IntN(len(b)/pageSize))
		for range 1 + r.IntN(40) {
			p[r.IntN(256)] = byte(r.Uint32())
		}
		return b
	},
	// Both metas as they were, the pages as they are, and the reverse.
	"old metas": func(r *rand.Rand, b, old []byte) []byte {
		for i := range 2 {
			if r.IntN(2) == 0 {
				copy(pageOf(b, i), pageOf(old, i))
			}
		}
		return b
	},
}

// anyPage returns one of the pages that carry the flag, in use or not.
func anyPage(r *rand.Rand, b []byte, flag uint16) []byte {
	var all [][]byte
	for i := 2; i < len(b)/pageSize; i++ {
		if p := pageOf(b, i); native.Uint16(p[8:]) == flag && native.Uint64(p) == uint64(i) {
			all = append(all, p)
		}
	}
	return all[r.IntN(len(all))]
}

func pageOf(b []byte, i int) []byte { return b[i*pageSize : (i+1)*pageSize] }
