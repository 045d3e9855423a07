package kv

import (
	"bytes"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"compactd/internal/events"
)

// List names at most n sessions of a tenant that have a ledger, in order, those
// behind the session after; "" begins with the first. It reads one row of each, and
// nothing that lists which there should be: in a file that was damaged since it was
// opened some may be missing, until Load or a checkpoint notices. What it does notice
// is a [*DamagedError].
func (s *Store) List(tenant, after string, n int) ([]string, error) {
	if err := s.usable(); err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	s.reading.RLock()
	defer s.reading.RUnlock()
	var out []string
	err := s.view(func(tx *bolt.Tx) (err error) {
		defer unmap(tx)
		out, err = list(tx, tenant, after, n)
		return err
	})
	switch {
	case errors.Is(err, ErrClosed):
		return nil, fmt.Errorf("list sessions: %w", err)
	case err != nil:
		return nil, s.damage(events.Address{Tenant: tenant}, err)
	}
	return out, nil
}

// list seeks from session to session. Names that do not rise come of a page that
// points back; going on could take for ever.
func list(tx *bolt.Tx, tenant, after string, n int) ([]string, error) {
	b := tx.Bucket(bucketRows)
	if b == nil {
		return nil, nil
	}
	var out []string
	prefix, cur := []byte(tenant+"."), b.Cursor()
	seek := prefix
	if after != "" {
		seek = behind(tenant, after)
	}
	for k, v := cur.Seek(seek); bytes.HasPrefix(k, prefix) && len(out) < n; k, v = cur.Seek(seek) {
		a, _, err := splitKey(k)
		if err == nil {
			_, err = verifyValue(k, v) // the checksum covers the key
		}
		if err == nil && a.Session <= after {
			err = fmt.Errorf("row %q is out of order", k)
		}
		if err != nil {
			return nil, err
		}
		out, after, seek = append(out, a.Session), a.Session, behind(tenant, a.Session)
	}
	return out, nil
}

// behind is a key above all rows of a session, and below those of the next.
func behind(tenant, session string) []byte { return []byte(tenant + "." + session + "\x01") }
