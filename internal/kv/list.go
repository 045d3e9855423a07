package kv

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"compactd/internal/events"
)

// List returns at most n sessions of a tenant that have a ledger, in order, behind the session
// after; "" begins with the first. It reads one row of each and does not check that the list is
// complete: after damage since Open, sessions may be missing until Load or a checkpoint detects it.
// Damage that List detects is a [*DamagedError].
func (s *Store) List(tenant, after string, n int) ([]string, error) {
	seek := []byte(tenant + ".")
	if after != "" {
		seek = behind(events.Address{Tenant: tenant, Session: after})
	}
	found, err := s.addresses(tenant+".", seek, n)
	var names []string
	for _, a := range found {
		names = append(names, a.Session)
	}
	return names, err
}

// After is List for all tenants, in the order of their addresses; the zero address begins
// with the first.
func (s *Store) After(a events.Address, n int) ([]events.Address, error) {
	var seek []byte
	if a != (events.Address{}) {
		seek = behind(a)
	}
	return s.addresses("", seek, n)
}

func (s *Store) addresses(prefix string, seek []byte, n int) (out []events.Address, err error) {
	if err := s.usable(); err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	s.reading.RLock()
	defer s.reading.RUnlock()
	err = s.read(func(tx *bolt.Tx) (err error) {
		defer unmap(tx)
		out, err = list(tx, []byte(prefix), seek, n)
		return err
	})
	switch {
	case errors.Is(err, ErrClosed):
		return nil, fmt.Errorf("list sessions: %w", err)
	case err != nil:
		tenant, _, _ := strings.Cut(prefix, ".")
		return nil, s.damage(events.Address{Tenant: tenant}, err)
	}
	return out, nil
}

// list seeks from session to session. A key that does not rise is an error: a damaged page may
// point back, and the search would never end.
func list(tx *bolt.Tx, prefix, seek []byte, n int) (out []events.Address, err error) {
	b := tx.Bucket(bucketRows)
	if b == nil {
		return nil, nil
	}
	cur := b.Cursor()
	for k, v := cur.Seek(seek); k != nil && bytes.HasPrefix(k, prefix) && len(out) < n; k, v = cur.Seek(seek) {
		a, err := addressOf(k)
		if err == nil {
			_, err = verifyValue(k, v) // the checksum covers the key
		}
		if err == nil && bytes.Compare(k, seek) < 0 {
			err = fmt.Errorf("row %q is out of order", k)
		}
		if err != nil {
			return nil, err
		}
		out, seek = append(out, a), behind(a)
	}
	return out, nil
}

// behind returns a key between the rows of a session and those of the next.
func behind(a events.Address) []byte { return []byte(a.String() + "\x01") }
