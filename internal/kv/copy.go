package kv

import (
	"context"
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"

	"compactd/internal/events"
)

// Copy writes the ledgers of the last checkpoint into a new file at path, replaces any file there,
// and returns their position. The copy is verified as in [Open], and closed, so that any machine
// may open it: a snapshot.
//
// Copy reads the whole file, free pages included, at some hundred MB/s. Loads and checkpoints
// continue, except a checkpoint that must map a larger file: it waits for the end of the copy,
// and loads wait behind it. The end of ctx ends the copy. An error leaves no file at path.
func (s *Store) Copy(ctx context.Context, path string) (Position, error) {
	m, err := s.copyPages(ctx, path)
	if err == nil {
		err = s.certify(ctx, path, m)
	}
	if err != nil {
		if rerr := os.Remove(path); !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		return Position{}, fmt.Errorf("copy ledgers to %s: %w", path, err)
	}
	return m, nil
}

// copyPages writes the pages of one state, and returns its position.
func (s *Store) copyPages(ctx context.Context, path string) (m Position, err error) {
	if err := s.usable(); err != nil {
		return m, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return m, err
	}
	s.reading.RLock()
	defer s.reading.RUnlock()
	err = s.read(func(tx *bolt.Tx) error {
		h, err := headOf(tx)
		if err != nil {
			return err
		}
		m = h.position
		_, err = tx.WriteTo(writerFunc(func(b []byte) (int, error) {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			return f.Write(b)
		}))
		return err
	})
	_, panicked := errors.AsType[*panicError](err)
	switch {
	case panicked, errors.Is(err, ErrDamaged):
		err = s.damage(events.Address{}, err)
	case err != nil && ctx.Err() != nil:
		err = ctx.Err() // bbolt does not wrap it
	}
	return m, errors.Join(err, f.Close())
}

// certify verifies a copy, and flags it as closed.
func (s *Store) certify(ctx context.Context, path string, want Position) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := s.opt
	o.Path, o.Sync, o.ReadOnly = path, false, false
	c, bad, err := open(o)
	if bad != nil {
		return errors.Join(bad.Reason, os.Remove(bad.Moved))
	}
	if err != nil {
		return err
	}
	if m := c.Position(); m != want {
		c.Abandon()
		return damaged("its position is %d, not %d", m.Cursor, want.Cursor)
	}
	return c.Close()
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }
