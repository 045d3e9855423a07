package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"compactd/internal/events"
)

// Store is the open file of one partition.
type Store struct {
	opt    Options
	file   *os.File // bbolt reads, writes and closes it
	db     *bolt.DB
	mapped atomic.Int64 // bytes that look-ups mapped since the last unmap
	// commit commits a transaction; tests replace it to inject failures.
	commit func(*bolt.Tx) error

	// writing is held by Checkpoint, Scrub, Close and Abandon.
	writing sync.Mutex
	closed  bool // guarded by writing

	reading sync.RWMutex // read-locked by Load, List and Copy, locked by Scrub

	mu      sync.RWMutex
	head    *head // the meta row in the file
	index   index
	pending map[uint64]tally // differences of the commit under way
	commits uint64           // rises at the begin and the end of a commit
	broken  error            // damage, which ends all reads and writes
	stuck   bool             // bbolt panicked and may still hold a lock
}

// Quarantined is a file that could not be trusted and was renamed. A fresh file replaces it.
type Quarantined struct {
	Reason error  // one of ErrDamaged, ErrOtherPartition, ErrOtherFormat, ErrOtherBoot
	Moved  string // the new path
}

// Open opens the file of a partition, or creates it. It reads the whole file, at some hundred MB/s
// or more. It quarantines an untrusted file; the store is then fresh and bad is not nil. err needs
// a fix by the caller: the file is [ErrInUse], cannot be opened, or cannot be written.
// See docs/adr/0016.
func Open(o Options) (s *Store, bad *Quarantined, err error) {
	if o, err = o.validate(); err != nil {
		return nil, nil, fmt.Errorf("open ledgers: %w", err)
	}
	s, bad, err = open(o)
	if err == nil && bad != nil {
		var again *Quarantined
		if s, again, err = open(o); again != nil {
			err = fmt.Errorf("fresh file: %w", again.Reason)
		}
	}
	if err != nil {
		return nil, bad, fmt.Errorf("open ledgers in %s: %w", o.Path, err)
	}
	return s, bad, nil
}

// open makes one attempt. It returns either a store or a quarantined file.
func open(o Options) (*Store, *Quarantined, error) {
	f, err := openLocked(o)
	if err != nil {
		return nil, nil, err
	}
	v, reason := inspect(f, o)
	if reason == nil {
		s, err := openVerified(f, o, v)
		if err == nil {
			return s, nil, nil
		}
		if _, ok := errors.AsType[*panicError](err); !ok {
			return nil, nil, err // bbolt has closed the file
		}
		reason = damaged("%w", err)
	}
	if o.ReadOnly {
		return nil, nil, errors.Join(reason, release(f))
	}
	moved, err := quarantine(o.Path)
	if err = errors.Join(err, release(f)); err != nil {
		return nil, nil, fmt.Errorf("quarantine (%w): %w", reason, err)
	}
	return nil, &Quarantined{Reason: reason, Moved: moved}, nil
}

// inspect verifies the file and compares it with the options.
func inspect(f *os.File, o Options) (*verified, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, damaged("%w", err)
	}
	if o.ReadOnly && info.Size() == 0 {
		return nil, fmt.Errorf("empty file: %w", fs.ErrNotExist)
	}
	v, err := verify(f, info.Size())
	if err != nil {
		return nil, err
	}
	if v.head != nil && !o.ReadOnly {
		return v, v.head.matches(o)
	}
	return v, nil
}

// mappedBytes is the initial size of the mapping. When a file outgrows its mapping, bbolt copies
// all that the transaction holds: most of the cost of a checkpoint in a small file. A mapping
// costs addresses, not memory.
const mappedBytes = 64 << 20

func openVerified(f *os.File, o Options, v *verified) (*Store, error) {
	s := &Store{opt: o, file: f, index: v.index, head: v.head, commit: (*bolt.Tx).Commit}
	if s.head == nil {
		s.head = &head{clean: true}
	}
	mapped := mappedBytes
	if o.Sync { // with a large mapping bbolt would grow the file by 16 MiB at a time
		mapped = 0
	}
	err := guard(func() (err error) {
		s.db, err = bolt.Open(o.Path, 0o600, &bolt.Options{
			OpenFile:       func(string, int, os.FileMode) (*os.File, error) { return f, nil },
			Timeout:        time.Second,
			PageSize:       pageSize,
			FreelistType:   bolt.FreelistMapType,
			NoFreelistSync: true,
			NoStatistics:   true,
			ReadOnly:       o.ReadOnly,
			// A sync at each growth would write all unsynced data to disk.
			NoGrowSync:      !o.Sync,
			InitialMmapSize: mapped,
		})
		return err
	})
	if err != nil && isFull(err) {
		return nil, writeError(o.Path, err)
	}
	if err == nil {
		s.Release() // bbolt.Open read every page
	}
	return s, err
}

// Position returns the position of the last checkpoint: zero in a fresh file.
func (s *Store) Position() Position {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.head.position
}

// Close syncs the file, flags it as closed and releases it. After an error the file is released
// without the flag. A second Close does nothing.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return nil
	}
	var err error
	if s.usable() == nil && !s.opt.ReadOnly && !s.head.clean {
		h := *s.head
		h.clean = true
		err = s.write(&h, nil)
	}
	return errors.Join(err, s.release())
}

// Abandon releases the file as a crash of the process would: without a flag and without a sync.
func (s *Store) Abandon() {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.closed {
		_ = s.release() // no caller could act on the error
	}
}

// release closes bbolt. The caller holds writing.
func (s *Store) release() error {
	s.closed = true
	s.mu.RLock()
	stuck := s.stuck
	s.mu.RUnlock()
	if stuck {
		return release(s.file) // db.Close could block forever
	}
	return s.db.Close()
}

// damage returns err as a [*DamagedError] and ends all use of the store: bbolt would follow damaged
// references to any page, and write there.
func (s *Store) damage(a events.Address, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = &DamagedError{Path: s.opt.Path, Address: a, Err: err}
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		s.stuck = true
	}
	return s.broken
}

// read runs fn in a read transaction. It returns a panic of bbolt as an error.
func (s *Store) read(fn func(*bolt.Tx) error) error {
	err := guard(func() error { return s.db.View(fn) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// usable returns the damage that ended the use of the store, or nil.
func (s *Store) usable() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.broken
}

// Discard closes the store and quarantines its file, which does not match the log.
// It returns the new path of the file.
func (s *Store) Discard() (moved string, err error) {
	s.Abandon()
	if moved, err = quarantine(s.opt.Path); err != nil {
		return "", fmt.Errorf("discard ledgers in %s: %w", s.opt.Path, err)
	}
	return moved, nil
}
