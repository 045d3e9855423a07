package kv

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Change describes the writes of a checkpoint to one ledger. A row replaces the row of the same name.
type Change struct {
	Address events.Address
	Rows    []compaction.Row
	Replace bool // Rows replace all earlier rows
	Drop    bool // deletes the ledger; Rows must be empty
}

func (c *Change) validate() error {
	if err := c.Address.Validate(); err != nil {
		return err
	}
	if c.Drop && len(c.Rows) > 0 {
		return errors.New("drop with rows")
	}
	for i := range c.Rows {
		if !validName(c.Rows[i].Name) {
			return fmt.Errorf("row name %q is not 1 to %d of a-z 0-9", c.Rows[i].Name, maxNameBytes)
		}
	}
	return nil
}

// Checkpoint writes changes and position in one transaction. Several changes of one
// ledger take effect in the order given. Checkpoint neither keeps nor alters changes.
//
// After an error nothing was written: a [*WriteError], a [*DamagedError], or an invalid change.
func (s *Store) Checkpoint(m Position, changes []Change) error {
	if s.opt.ReadOnly {
		return fmt.Errorf("checkpoint: %w", ErrReadOnly)
	}
	todo := make([]ordered, len(changes))
	for i := range changes {
		if err := changes[i].validate(); err != nil {
			return fmt.Errorf("checkpoint of %s: %w", changes[i].Address, err)
		}
		todo[i] = ordered{prefixOf(changes[i].Address), &changes[i]}
	}
	// bbolt is several times faster in key order.
	slices.SortStableFunc(todo, func(a, b ordered) int { return cmp.Compare(a.prefix, b.prefix) })

	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return fmt.Errorf("checkpoint: %w", ErrClosed)
	}
	if err := s.usable(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	h := *s.head
	h.format, h.partition, h.partitions = formatVersion, uint32(s.opt.Partition), uint32(s.opt.Partitions)
	h.position, h.boot, h.synced, h.clean = m, s.opt.BootID, s.opt.Sync, false
	if err := s.write(&h, todo); err != nil {
		return fmt.Errorf("checkpoint at %d: %w", m.Cursor, err)
	}
	return nil
}

type ordered struct {
	prefix string
	*Change
}

// write applies the changes and stores h with the resulting rows and digest. The caller holds writing.
func (s *Store) write(h *head, todo []ordered) error {
	// A clean or synced flag makes a file trusted after a power loss. Its removal must reach the
	// disk before any unsynced write. Only a synced write sets it again.
	s.db.NoSync = !s.opt.Sync && !s.head.clean && !s.head.synced && !h.clean
	w := &writer{head: h, hasCheckpoint: !s.head.fresh(), index: s.index, diff: map[uint64]tally{}}
	var tx *bolt.Tx
	err := guard(func() (err error) {
		if tx, err = s.db.Begin(true); err != nil {
			return err
		}
		if err := w.run(tx, todo); err != nil {
			return err
		}
		s.begin(w)
		return s.commit(tx)
	})
	if err == nil {
		s.end(w)
		s.Release() // the commit brought every rewritten page into memory
		return nil
	}
	if tx != nil {
		// A failed commit has already closed tx.
		if rerr := guard(tx.Rollback); rerr != nil && !errors.Is(rerr, berrors.ErrTxClosed) {
			err = errors.Join(err, rerr)
		}
	}
	return s.fail(w, err)
}

// begin lets loads accept the state after the commit, beside the state before it.
func (s *Store) begin(w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = w.diff
	s.commits++
}

// end lets loads accept only the state after the commit.
func (s *Store) end(w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for slot, by := range w.diff {
		s.index.apply(slot, by)
	}
	s.head, s.pending = w.head, nil
	s.commits++
}

// fail reads from the file whether a failed commit took effect. A commit whose last sync fails
// has already replaced the meta page, and bbolt continues from it.
func (s *Store) fail(w *writer, err error) error {
	if _, ok := errors.AsType[*panicError](err); ok || errors.Is(err, ErrDamaged) {
		s.undo()
		return s.damage(events.Address{}, err)
	}
	if found, rerr := s.readHead(); rerr == nil && *found == *w.head {
		s.end(w)
	} else {
		s.undo()
	}
	return writeError(s.opt.Path, err)
}

// undo lets loads accept only the state before the commit.
func (s *Store) undo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = nil
	s.commits++
}

// readHead reads the current meta row.
func (s *Store) readHead() (h *head, err error) {
	err = s.read(func(tx *bolt.Tx) error {
		h, err = headOf(tx)
		return err
	})
	return h, err
}

func headOf(tx *bolt.Tx) (*head, error) {
	b := tx.Bucket(bucketMeta)
	if b == nil {
		return &head{clean: true}, nil
	}
	return openHead(keyHead, b.Get(keyHead))
}

// writer is one transaction.
type writer struct {
	head          *head // rows and digest are kept up to date
	hasCheckpoint bool  // the file held one before this transaction
	index         index
	diff          map[uint64]tally

	rows   *bolt.Bucket
	values []byte // with checksums, in use until the commit
	key    []byte
}

// errNoBuckets reports a file that was cut off within the page that names the buckets: the
// mapping shows zeros there, and bbolt finds neither a bucket nor an error.
var errNoBuckets = damaged("the buckets are gone")

func (w *writer) run(tx *bolt.Tx, todo []ordered) (err error) {
	if w.hasCheckpoint && (tx.Bucket(bucketRows) == nil || tx.Bucket(bucketMeta) == nil) {
		return errNoBuckets
	}
	if w.rows, err = tx.CreateBucketIfNotExists(bucketRows); err != nil {
		return err
	}
	w.values = make([]byte, 0, valuesSize(todo))
	for i := range todo {
		if err := w.change(&todo[i]); err != nil {
			return err
		}
	}
	meta, err := tx.CreateBucketIfNotExists(bucketMeta)
	if err != nil {
		return err
	}
	return meta.Put(keyHead, appendValue(nil, keyHead, w.head.encode()))
}

func valuesSize(todo []ordered) (n int) {
	for i := range todo {
		for j := range todo[i].Rows {
			n += len(todo[i].Rows[j].Data) + sumBytes
		}
	}
	return n
}

func (w *writer) change(c *ordered) error {
	slot := w.index.slot([]byte(c.prefix))
	if c.Replace || c.Drop {
		if err := w.drop(slot, c); err != nil {
			return err
		}
	}
	// A session that is not in the index has no rows to look for.
	fresh := (w.index.sessions[slot] + w.diff[slot]).rows() == 0
	rows := c.Rows
	if byName := func(a, b compaction.Row) int { return cmp.Compare(a.Name, b.Name) }; !slices.IsSortedFunc(rows, byName) {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, byName)
	}
	for i := range rows {
		// The second of two rows with one name finds the first.
		twin := i > 0 && rows[i].Name == rows[i-1].Name
		if err := w.put(slot, c.prefix, &rows[i], fresh && !twin); err != nil {
			return err
		}
	}
	return nil
}

// drop removes all rows of a ledger except those that c writes again: replacing a row is
// cheaper than deleting and adding it.
func (w *writer) drop(slot uint64, c *ordered) error {
	if (w.index.sessions[slot] + w.diff[slot]).rows() == 0 {
		return nil
	}
	stays := make(map[string]bool, len(c.Rows))
	for i := range c.Rows {
		stays[c.Rows[i].Name] = true
	}
	var gone [][]byte // collected first: a cursor skips rows when it deletes
	prefix := []byte(c.prefix)
	cur := w.rows.Cursor()
	for k, v := cur.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = cur.Next() {
		if stays[string(k[len(prefix):])] {
			continue
		}
		if err := w.subtract(slot, k, v); err != nil {
			return err
		}
		gone = append(gone, k)
	}
	for _, k := range gone {
		if err := w.rows.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) put(slot uint64, prefix string, r *compaction.Row, fresh bool) error {
	w.key = append(append(w.key[:0], prefix...), r.Name...)
	if !fresh {
		if old := w.rows.Get(w.key); old != nil {
			if err := w.subtract(slot, w.key, old); err != nil {
				return err
			}
		}
	}
	from := len(w.values)
	w.values = appendValue(w.values, w.key, r.Data)
	value := w.values[from:len(w.values):len(w.values)]
	h := hashRow(w.key, value)
	w.head.rows, w.head.digest = w.head.rows+1, w.head.digest.add(h)
	w.diff[slot] += h.tally()
	return w.rows.Put(w.key, value)
}

// subtract takes a row out of the sums. The caller then deletes or replaces it.
func (w *writer) subtract(slot uint64, key, value []byte) error {
	if len(value) < sumBytes {
		return damaged("row %q has %d bytes", key, len(value))
	}
	h := hashRow(key, value)
	w.head.rows, w.head.digest = w.head.rows-1, w.head.digest.sub(h)
	w.diff[slot] -= h.tally()
	return nil
}
