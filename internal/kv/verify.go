package kv

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
)

var (
	bucketMeta = []byte("meta")
	bucketRows = []byte("rows")
	keyHead    = []byte("head")
)

// verified describes a file whose every page and row was checked.
type verified struct {
	head  *head // nil without a checkpoint
	index index
}

// verify reads the whole file and returns an error if it cannot be trusted. It proves that the rows
// are exactly those of the checkpoint at the file's position.
func verify(file io.ReaderAt, size int64) (*verified, error) {
	v := &verified{index: index{seed: maphash.MakeSeed(), sessions: map[uint64]tally{}}}
	if size == 0 {
		return v, nil
	}
	p, err := openPages(file, size)
	if err != nil {
		return nil, err
	}
	entries := map[string][]byte{}
	err = p.walk(p.root, nil, nil, 0, func(name, entry []byte, flags uint32) error {
		if flags != flagBucket {
			return damaged("%q is not a bucket", name)
		}
		entries[string(name)] = bytes.Clone(entry)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return v, nil
	}
	if err := v.readHead(p, entries); err != nil {
		return nil, err
	}
	return v, v.readRows(p, entries)
}

func (v *verified) readHead(p *pages, entries map[string][]byte) error {
	rows, meta := entries[string(bucketRows)], entries[string(bucketMeta)]
	if len(entries) != 2 || rows == nil || meta == nil {
		return damaged("other buckets than meta and rows")
	}
	err := p.bucket(meta, func(key, value []byte, flags uint32) (err error) {
		if flags != 0 || v.head != nil {
			return damaged("%q in bucket meta", key)
		}
		v.head, err = openHead(key, value)
		return err
	})
	if err == nil && v.head == nil {
		err = damaged("no meta row")
	}
	return err
}

// openHead checks and decodes the meta row.
func openHead(key, value []byte) (*head, error) {
	if !bytes.Equal(key, keyHead) {
		return nil, damaged("%q in bucket meta", key)
	}
	data, err := verifyValue(key, value)
	if err != nil {
		return nil, damaged("%w", err)
	}
	return decodeHead(data)
}

func (v *verified) readRows(p *pages, entries map[string][]byte) error {
	var rows uint64
	var sum digest
	var prefix []byte // of the session that is being read
	var session tally
	err := p.bucket(entries[string(bucketRows)], func(key, value []byte, flags uint32) error {
		if flags != 0 {
			return damaged("%q is a bucket", key)
		}
		if _, err := verifyValue(key, value); err != nil {
			return damaged("%w", err)
		}
		if len(prefix) == 0 || !bytes.HasPrefix(key, prefix) {
			if _, err := addressOf(key); err != nil {
				return damaged("%w", err)
			}
			v.index.add(prefix, session)
			prefix, session = append(prefix[:0], key[:bytes.IndexByte(key, 0)+1]...), 0
		}
		h := hashRow(key, value)
		rows, sum, session = rows+1, sum.add(h), session+h.tally()
		return nil
	})
	if err != nil {
		return err
	}
	v.index.add(prefix, session)
	if rows != v.head.rows || sum != v.head.digest {
		return damaged("%d rows are not the %d of the checkpoint at %d", rows, v.head.rows, v.head.position.Cursor)
	}
	return nil
}

// matches returns an error if a verified file belongs to another partition or boot than o.
func (h *head) matches(o Options) error {
	if of, n := int(h.partition), int(h.partitions); !o.Inherited && (n == 0 || of != o.Partition || !grown(n, o.Partitions)) {
		return fmt.Errorf("%w: made for %d of %d, opened as %d of %d", ErrOtherPartition, h.partition, h.partitions, o.Partition, o.Partitions)
	}
	if h.clean || h.synced || h.boot != "" && h.boot == o.BootID {
		return nil
	}
	return fmt.Errorf("%w %q, this is %q", ErrOtherBoot, h.boot, o.BootID)
}

// grown reports whether a log can grow from n partitions to this number: each growth doubles it.
func grown(n, partitions int) bool {
	times := partitions / n
	return partitions%n == 0 && times&(times-1) == 0
}

// index holds a tally per session. Its keys are hashes of addresses under a seed of the process. If
// two hashes collide, loads of both sessions fail; neither returns a wrong ledger.
type index struct {
	seed     maphash.Seed
	sessions map[uint64]tally
}

func (i index) slot(prefix []byte) uint64 { return maphash.Bytes(i.seed, prefix) }

func (i index) add(prefix []byte, t tally) {
	if t != 0 {
		i.apply(i.slot(prefix), t)
	}
}

// apply adds a difference. It removes a session without rows.
func (i index) apply(slot uint64, by tally) {
	t := i.sessions[slot] + by
	if t.rows() == 0 {
		delete(i.sessions, slot)
		return
	}
	i.sessions[slot] = t
}
