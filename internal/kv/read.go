package kv

import (
	"bytes"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Load returns the rows of a ledger in the order of their names, nil for an unknown session. The
// caller owns the rows. A [*DamagedError] means that the file was damaged since it was opened.
func (s *Store) Load(a events.Address) ([]compaction.Row, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("load %s: %w", a, err)
	}
	prefix := []byte(prefixOf(a))
	for {
		want, err := s.expect(prefix)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", a, err)
		}
		if want.now == 0 {
			return nil, nil
		}
		rows, found, err := s.readRows(prefix)
		if errors.Is(err, ErrClosed) {
			return nil, fmt.Errorf("load %s: %w", a, err)
		}
		if err == nil && (found == want.now || found == want.soon) {
			return rows, nil
		}
		if err == nil {
			if s.moved(want.commits) {
				continue // a checkpoint began or ended during the read
			}
			err = fmt.Errorf("%d rows are not the %d that were written", found.rows(), want.now.rows())
		}
		return nil, s.damage(a, err)
	}
}

// expected has the tallies that a load accepts: before and after the commit under way.
type expected struct {
	now, soon tally
	commits   uint64
}

func (s *Store) expect(prefix []byte) (expected, error) {
	slot := s.index.slot(prefix)
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.index.sessions[slot]
	return expected{now: now, soon: now + s.pending[slot], commits: s.commits}, s.broken
}

func (s *Store) moved(since uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.commits != since
}

// readRows collects the rows of one session from one state of the file.
func (s *Store) readRows(prefix []byte) (rows []compaction.Row, found tally, err error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	err = s.read(func(tx *bolt.Tx) (err error) {
		defer func() { s.looked(tx, rows) }()
		b := tx.Bucket(bucketRows)
		if b == nil {
			return nil
		}
		cur := b.Cursor()
		for k, v := cur.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = cur.Next() {
			if rows, err = appendRow(rows, k, v, len(prefix)); err != nil {
				return err
			}
			found += hashRow(k, v).tally()
		}
		return nil
	})
	return rows, found, err
}

// appendRow checks a row and copies it out of the mapped file. A key that does not rise is an
// error: a damaged page may point back, and the read would never end.
func appendRow(rows []compaction.Row, k, v []byte, prefix int) ([]compaction.Row, error) {
	data, err := verifyValue(k, v)
	if err != nil {
		return nil, err
	}
	name := string(k[prefix:])
	if len(rows) > 0 && rows[len(rows)-1].Name >= name {
		return nil, fmt.Errorf("row %q is out of order", k)
	}
	return append(rows, compaction.Row{Name: name, Data: bytes.Clone(data)}), nil
}

// Each calls fn with every ledger of one checkpoint, in the order of their addresses. It
// returns at the first error of fn. fn may load, but must not call Checkpoint or Close.
//
// Each checks only at its end that no row is missing: use the results after it returned nil.
func (s *Store) Each(fn func(events.Address, []compaction.Row) error) error {
	if err := s.usable(); err != nil {
		return fmt.Errorf("read all ledgers: %w", err)
	}
	all := &sweep{hasCheckpoint: s.hasCheckpoint()}
	var tx *bolt.Tx
	if err := guard(func() (err error) { tx, err = s.db.Begin(false); return err }); err != nil {
		if errors.Is(err, berrors.ErrDatabaseNotOpen) {
			err = ErrClosed
		} else {
			err = s.damage(events.Address{}, err)
		}
		return fmt.Errorf("read all ledgers: %w", err)
	}
	defer tx.Rollback()
	for {
		var a events.Address
		var rows []compaction.Row
		if err := guard(func() (err error) { a, rows, err = all.next(tx); return err }); err != nil {
			return s.damage(a, err)
		}
		if rows == nil {
			return nil
		}
		s.looked(tx, rows)
		if err := fn(a, rows); err != nil {
			return err
		}
	}
}

// hasCheckpoint reports whether the file holds a checkpoint, readable or not.
func (s *Store) hasCheckpoint() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !s.head.fresh()
}

// sweep goes over all rows of one state.
type sweep struct {
	hasCheckpoint bool
	cur           *bolt.Cursor
	k, v          []byte
	prefix        []byte // of the session before
	head          *head
	rows          uint64
	sum           digest
}

// next returns the next ledger. After the last one it checks all rows against the meta row and
// returns nil.
func (w *sweep) next(tx *bolt.Tx) (a events.Address, rows []compaction.Row, err error) {
	if w.cur == nil {
		if w.head, err = headOf(tx); err != nil {
			return a, nil, err
		}
		if w.hasCheckpoint && w.head.fresh() {
			return a, nil, errNoBuckets
		}
		b := tx.Bucket(bucketRows)
		if b == nil {
			return a, nil, w.check()
		}
		w.cur = b.Cursor()
		w.k, w.v = w.cur.First()
	}
	if w.k == nil {
		return a, nil, w.check()
	}
	if a, err = addressOf(w.k); err != nil {
		return a, nil, err
	}
	prefix := []byte(prefixOf(a))
	if bytes.Compare(w.prefix, prefix) >= 0 {
		return a, nil, fmt.Errorf("row %q is out of order", w.k)
	}
	for w.prefix = prefix; bytes.HasPrefix(w.k, prefix); w.k, w.v = w.cur.Next() {
		if rows, err = appendRow(rows, w.k, w.v, len(prefix)); err != nil {
			return a, nil, err
		}
		w.rows, w.sum = w.rows+1, w.sum.add(hashRow(w.k, w.v))
	}
	return a, rows, nil
}

func (w *sweep) check() error {
	if w.rows != w.head.rows || w.sum != w.head.digest {
		return fmt.Errorf("%d rows are not the %d of the checkpoint at %d", w.rows, w.head.rows, w.head.position.Cursor)
	}
	return nil
}
