package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// This file uses a part of bbolt's format, version 2: pages of a fixed size, each
// with a header of 16 bytes (id, flags, count, overflow), in the byte order of
// the machine. Two meta pages, written in turn, name the root of a tree.
const (
	pageSize    = 4096 // the same on any machine
	pageHeader  = 16
	elementSize = 16 // of branch and leaf elements

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagBucket   = 0x01 // of a leaf element

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaBytes   = 64
	noFreelist  = ^uint64(0)

	// A tree of depth 64 would need more pages than a disk has.
	maxDepth = 64
)

var native = binary.NativeEndian

// pages reads a bbolt file with plain reads. bbolt maps the file and trusts its pages, which have
// no checksums: a damaged page makes it panic, in part on its own goroutine, or read outside of
// the mapping, and both end the process. So this reader first checks every page in use, at least
// as strictly as bbolt: bbolt can safely read and write a file that passes.
type pages struct {
	file io.ReaderAt
	size int64

	root     uint64
	freelist uint64
	high     uint64 // number of pages; each id is below it
	used     []uint64
	bufs     [maxDepth][]byte
}

// visit is called with the elements of a bucket, in key order. Both slices are
// only valid during the call.
type visit func(key, value []byte, flags uint32) error

func openPages(file io.ReaderAt, size int64) (*pages, error) {
	p := &pages{file: file, size: size}
	var newest, found uint64
	for id := range int64(2) {
		m, ok, err := p.meta(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		// The one with the higher transaction id, as bbolt does.
		if txid := native.Uint64(m[48:]); found == 0 || txid > newest {
			newest = txid
			p.root, p.freelist, p.high = native.Uint64(m[16:]), native.Uint64(m[32:]), native.Uint64(m[40:])
		}
		found++
	}
	if found == 0 {
		return nil, damaged("no valid meta page")
	}
	if p.high < 4 || p.high > uint64(size)/pageSize {
		return nil, damaged("%d pages in %d bytes", p.high, size)
	}
	p.used = make([]uint64, p.high/64+1)
	return p, p.checkFreelist()
}

// meta returns a meta page and whether it is valid.
func (p *pages) meta(id int64) ([]byte, bool, error) {
	b := make([]byte, metaBytes)
	if (id+1)*pageSize > p.size {
		return nil, false, nil
	}
	if _, err := p.file.ReadAt(b, id*pageSize+pageHeader); err != nil {
		return nil, false, damaged("read meta page %d: %w", id, err)
	}
	if native.Uint32(b) != metaMagic || native.Uint32(b[4:]) != metaVersion || native.Uint32(b[8:]) != pageSize {
		return nil, false, nil
	}
	h := fnv.New64a()
	h.Write(b[:metaBytes-8])
	return b, h.Sum64() == native.Uint64(b[metaBytes-8:]), nil
}

// checkFreelist accepts only an empty free list, which a file without any checkpoint has.
func (p *pages) checkFreelist() error {
	if p.freelist == noFreelist {
		return nil
	}
	b, err := p.page(p.freelist, 0)
	if err != nil {
		return err
	}
	if flags, count := native.Uint16(b[8:]), native.Uint16(b[10:]); flags != flagFreelist || count != 0 {
		return damaged("page %d is not an empty free list", p.freelist)
	}
	return nil
}

// page reads a page with its overflow, and marks both as used. The slice is valid until the next
// page of the same depth.
func (p *pages) page(id uint64, depth int) ([]byte, error) {
	if id < 2 || id >= p.high {
		return nil, damaged("page %d of %d", id, p.high)
	}
	b := p.buf(depth, pageSize)
	if _, err := p.file.ReadAt(b, int64(id)*pageSize); err != nil {
		return nil, damaged("read page %d: %w", id, err)
	}
	if self := native.Uint64(b); self != id {
		return nil, damaged("page %d contains the id of page %d", id, self)
	}
	last := id + uint64(native.Uint32(b[12:]))
	if last >= p.high {
		return nil, damaged("page %d reaches to page %d of %d", id, last, p.high)
	}
	for i := id; i <= last; i++ {
		if p.used[i/64]&(1<<(i%64)) != 0 {
			return nil, damaged("page %d is used twice", i)
		}
		p.used[i/64] |= 1 << (i % 64)
	}
	if last == id {
		return b, nil
	}
	b = p.buf(depth, int(last-id+1)*pageSize)
	if _, err := p.file.ReadAt(b, int64(id)*pageSize); err != nil {
		return nil, damaged("read pages %d to %d: %w", id, last, err)
	}
	return b, nil
}

func (p *pages) buf(depth, n int) []byte {
	if cap(p.bufs[depth]) < n {
		p.bufs[depth] = make([]byte, n)
	}
	return p.bufs[depth][:n]
}

// walk visits the tree under the page id. first is its key in the branch above, nil at the root.
// end is the first key of the next page, nil if there is no next page.
func (p *pages) walk(id uint64, first, end []byte, depth int, fn visit) error {
	if depth == maxDepth {
		return damaged("page %d is %d deep", id, depth)
	}
	b, err := p.page(id, depth)
	if err != nil {
		return err
	}
	switch flags := native.Uint16(b[8:]); flags {
	case flagLeaf:
		return leaf(b, id, first, end, fn)
	case flagBranch:
		return p.branch(b, id, first, end, depth, fn)
	default:
		return damaged("page %d has flags %#x", id, flags)
	}
}

func (p *pages) branch(b []byte, id uint64, first, end []byte, depth int, fn visit) error {
	count := int(native.Uint16(b[10:]))
	if count == 0 {
		return damaged("branch page %d is empty", id)
	}
	key, err := branchKey(b, id, 0, count)
	if err != nil {
		return err
	}
	if err := checkFirst(id, first, key); err != nil {
		return err
	}
	for i := range count {
		next := end
		if i+1 < count {
			if next, err = branchKey(b, id, i+1, count); err != nil {
				return err
			}
		}
		if next != nil && bytes.Compare(key, next) >= 0 {
			return damaged("page %d: key %d is out of order", id, i)
		}
		child := native.Uint64(b[pageHeader+i*elementSize+8:])
		if err := p.walk(child, key, next, depth+1, fn); err != nil {
			return err
		}
		key = next
	}
	return nil
}

// branchKey returns the key of element i: pos and ksize are 32 bits each.
func branchKey(b []byte, id uint64, i, count int) ([]byte, error) {
	at := pageHeader + i*elementSize
	if at+elementSize > len(b) {
		return nil, damaged("page %d has no room for %d elements", id, count)
	}
	return slice(b, id, at, count, uint64(native.Uint32(b[at:])), uint64(native.Uint32(b[at+4:])))
}

// leaf visits the elements of a leaf page: flags, pos, ksize and vsize, 32 bits each.
func leaf(b []byte, id uint64, first, end []byte, fn visit) error {
	count := int(native.Uint16(b[10:]))
	if count == 0 {
		if first != nil {
			return damaged("leaf page %d is empty", id)
		}
		return nil
	}
	if pageHeader+count*elementSize > len(b) {
		return damaged("page %d has no room for %d elements", id, count)
	}
	var last []byte
	for i := range count {
		at := pageHeader + i*elementSize
		pos, ksize, vsize := uint64(native.Uint32(b[at+4:])), uint64(native.Uint32(b[at+8:])), uint64(native.Uint32(b[at+12:]))
		key, err := slice(b, id, at, count, pos, ksize)
		if err != nil {
			return err
		}
		value, err := slice(b, id, at, count, pos+ksize, vsize)
		if err != nil {
			return err
		}
		if i == 0 {
			err = checkFirst(id, first, key)
		}
		if i > 0 && bytes.Compare(last, key) >= 0 || end != nil && bytes.Compare(key, end) >= 0 {
			err = damaged("page %d: key %d is out of order", id, i)
		}
		if err != nil {
			return err
		}
		if err := fn(key, value, native.Uint32(b[at:])); err != nil {
			return err
		}
		last = key
	}
	return nil
}

// slice returns n bytes at pos, which is relative to the element at.
func slice(b []byte, id uint64, at, count int, pos, n uint64) ([]byte, error) {
	from := uint64(at) + pos
	if from < uint64(pageHeader+count*elementSize) || from+n > uint64(len(b)) {
		return nil, damaged("page %d: %d bytes at %d of %d", id, n, from, len(b))
	}
	return b[from : from+n : from+n], nil
}

// checkFirst requires that the first key of a page equals its key in the branch above. bbolt reads
// a file without that, but damages it on a write: it finds the page in the branch by that key, and
// without an exact match leaves a second reference to a freed page.
func checkFirst(id uint64, first, key []byte) error {
	if len(key) == 0 {
		return damaged("page %d begins with an empty key", id)
	}
	if first != nil && !bytes.Equal(first, key) {
		return damaged("page %d begins with another key than its branch has", id)
	}
	return nil
}

// bucket visits the rows of a bucket. entry is its value in the tree of buckets: a root page, a
// sequence, and if the root is 0, the bucket's only page inline.
func (p *pages) bucket(entry []byte, fn visit) error {
	if len(entry) < 16 {
		return damaged("bucket entry of %d bytes", len(entry))
	}
	if root := native.Uint64(entry); root != 0 {
		return p.walk(root, nil, nil, 1, fn)
	}
	page := entry[16:]
	if len(page) < pageHeader || native.Uint16(page[8:]) != flagLeaf {
		return damaged("bucket entry holds no page")
	}
	return leaf(page, 0, nil, nil, fn)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}
