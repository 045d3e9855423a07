package kv

import (
	"errors"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

const (
	// mostMapped limits the mapped bytes that look-ups bring into memory. Eight stores then hold up
	// to 32 MiB of their files.
	mostMapped = 4 << 20
	// mappedAround is the number of bytes that Linux maps around a page on a fault.
	mappedAround = 64 << 10
)

// looked counts the mapped bytes of a look-up and unmaps the file's pages beyond mostMapped.
func (s *Store) looked(tx *bolt.Tx, rows []compaction.Row) {
	n := int64(mappedAround)
	for i := range rows {
		n += int64(len(rows[i].Data))
	}
	if s.mapped.Add(n) >= mostMapped {
		s.mapped.Store(0)
		unmap(tx)
	}
}

// Release releases the mapped pages from the process's memory. Later look-ups read them from the
// page cache.
func (s *Store) Release() {
	if s.usable() != nil {
		return
	}
	if err := s.read(func(tx *bolt.Tx) error { unmap(tx); return nil }); err != nil && !errors.Is(err, ErrClosed) {
		_ = s.damage(events.Address{}, err) // the next call on the store returns it
	}
}

// unmap releases the mapped pages from the process's memory. Nothing is lost: bbolt does not
// write through its mapping, and the next read of a page takes it from the page cache. tx keeps
// the mapping at its address. A system that ignores the advice reclaims pages under pressure.
func unmap(tx *bolt.Tx) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED)
}
