package kv

import (
	"errors"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"compactd/internal/events"
)

// mappedLedgers is after how many look-ups of a ledger the pages that they brought into
// the process are given back. Linux maps 64 KiB around a page that is read, so a store
// has up to 8 MiB of its file in memory between two checkpoints. After 32, a load takes nearly
// twice as long.
const mappedLedgers = 128

// looked counts ledgers that were looked up in the mapped file, and gives its pages back
// from time to time.
func (s *Store) looked(tx *bolt.Tx) {
	if s.lookups.Add(1)%mappedLedgers == 0 {
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
