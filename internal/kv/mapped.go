package kv

import (
	"errors"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

const (
	// mostMapped is how many bytes look-ups may bring into the process before they are given back. Eight
	// stores have up to 32 MiB of their files in memory then.
	mostMapped = 4 << 20
	// mappedAround is how many Linux maps around a page that is read.
	mappedAround = 64 << 10
)

// looked counts the bytes of a ledger that was looked up in the mapped file, and gives its pages back from
// time to time.
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

// Release gives the pages of the mapped file back, which look-ups brought into the
// process. The next one takes what it needs from the system's cache.
func (s *Store) Release() {
	if s.usable() != nil {
		return
	}
	if err := s.view(func(tx *bolt.Tx) error { unmap(tx); return nil }); err != nil && !errors.Is(err, ErrClosed) {
		_ = s.damage(events.Address{}, err) // for the next that uses the file
	}
}

// unmap gives the pages of the mapped file back. The next look at one takes it from the
// system's cache; nothing is lost, since bbolt does not write by its mapping. A transaction
// holds the mapping where it is. A system that ignores the advice takes pages back when it
// needs memory.
func unmap(tx *bolt.Tx) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), unix.MADV_DONTNEED)
}
