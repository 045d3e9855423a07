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
	file   *os.File // the one that bbolt reads and writes; it closes it
	db     *bolt.DB
	mapped atomic.Int64 // bytes that look-ups brought into the process
	// commit ends a transaction; tests put failures here.
	commit func(*bolt.Tx) error

	// writing is held for one checkpoint, and by Close.
	writing sync.Mutex
	closed  bool // under writing; no load may run on

	reading sync.RWMutex // held while a load or a list runs, and against them while pages are overwritten

	mu      sync.RWMutex
	head    *head // as in the file
	index   index
	pending map[uint64]tally // differences of the commit under way
	commits uint64           // rises when one begins, and when it ends
	broken  error            // damage was found; nothing more is read or written
	stuck   bool             // bbolt panicked, perhaps with a lock in its hands
}

// Quarantined is a file that could not be trusted and was renamed. A fresh file replaces it.
type Quarantined struct {
	Reason error  // one of ErrDamaged, ErrOtherPartition, ErrOtherFormat, ErrOtherBoot
	Moved  string // where the file is now
}

// Open opens the file of a partition, or creates it. It reads the whole file, at some hundred MB/s
// and more. A file that cannot be trusted is quarantined; the store is then fresh and bad is not
// nil. err is a problem that the caller must fix: the file is [ErrInUse], cannot be opened, or
// cannot be written.
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

// open makes one attempt. When it quarantines a file there is no store yet.
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

// mappedBytes is how much of a file is mapped at once. bbolt copies all that a
// transaction holds when its mapping is outgrown, which was most of the cost of a
// checkpoint in a young file. It costs addresses, not memory.
const mappedBytes = 64 << 20

func openVerified(f *os.File, o Options, v *verified) (*Store, error) {
	s := &Store{opt: o, file: f, index: v.index, head: v.head, commit: (*bolt.Tx).Commit}
	if s.head == nil {
		s.head = &head{clean: true}
	}
	mapped := mappedBytes
	if o.Sync { // with so large a mapping bbolt would grow the file by 16 MiB at a time
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
			// Growing by truncation syncs the file, which takes as long as all
			// that is not yet on disk.
			NoGrowSync:      !o.Sync,
			InitialMmapSize: mapped,
		})
		return err
	})
	if err != nil && isFull(err) {
		return nil, writeError(o.Path, err)
	}
	if err == nil {
		s.Release() // bbolt has looked at every page
	}
	return s, err
}

// Position returns that of the last checkpoint: zero in a fresh file.
func (s *Store) Position() Position {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.head.position
}

// Sessions returns how many ledgers there are.
func (s *Store) Sessions() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.index.sessions)
}

// Close puts everything on disk, flags the file as closed and releases it. After an error the file
// is released too, but not flagged as closed. Closing twice is fine.
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

// Abandon releases the file as a crash of the process would: nothing is
// marked, nothing is synced.
func (s *Store) Abandon() {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.closed {
		_ = s.release() // no caller is left for it
	}
}

// release ends the use of bbolt; writing is held.
func (s *Store) release() error {
	s.closed = true
	s.mu.RLock()
	stuck := s.stuck
	s.mu.RUnlock()
	if stuck {
		return release(s.file) // bbolt could wait for ever
	}
	return s.db.Close()
}

// damage returns err as a [*DamagedError] and ends the use of the store: bbolt would follow damaged
// pages anywhere, also to write.
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

// view calls fn with one state of the file. A panic of bbolt is an error.
func (s *Store) view(fn func(*bolt.Tx) error) error {
	err := guard(func() error { return s.db.View(fn) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// usable is nil while transactions make sense.
func (s *Store) usable() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.broken
}

// Discard closes the store and quarantines its file: the caller found that it does not fit the log.
// It returns the new path of the file.
func (s *Store) Discard() (moved string, err error) {
	s.Abandon()
	if moved, err = quarantine(s.opt.Path); err != nil {
		return "", fmt.Errorf("discard ledgers in %s: %w", s.opt.Path, err)
	}
	return moved, nil
}
