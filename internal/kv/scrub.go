package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Scrub overwrites every unused page with zeros: bbolt does not clear pages that it frees. After
// Scrub no byte of a dropped ledger is in the file or on disk. Loads wait for Scrub; [Store.Each]
// must not run during it.
func (s *Store) Scrub() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return fmt.Errorf("scrub: %w", ErrClosed)
	}
	if err := s.usable(); err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	s.reading.Lock() // a running load may still read pages that are no longer in use
	defer s.reading.Unlock()
	if err := scrub(s.file); err != nil {
		return fmt.Errorf("scrub %s: %w", s.opt.Path, err)
	}
	return nil
}

// scrub overwrites every page that cannot be reached from the newest meta page.
func scrub(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p, err := used(f, info.Size())
	if err != nil {
		return err
	}
	zero := make([]byte, pageSize)
	for id := uint64(2); int64(id)*pageSize < info.Size(); id++ {
		if id < p.high && p.used[id/64]&(1<<(id%64)) != 0 {
			continue
		}
		if _, err := f.WriteAt(zero, int64(id)*pageSize); err != nil {
			return err
		}
	}
	return f.Sync()
}

// used marks all pages of a file that are in use.
func used(f *os.File, size int64) (*pages, error) {
	p, err := openPages(f, size)
	if err != nil {
		return nil, err
	}
	var roots [][]byte
	err = p.walk(p.root, nil, nil, 0, func(_, entry []byte, _ uint32) error {
		roots = append(roots, slices.Clone(entry))
		return nil
	})
	for _, entry := range roots {
		err = errors.Join(err, p.bucket(entry, func(_, _ []byte, _ uint32) error { return nil }))
	}
	return p, err
}

// RemoveQuarantined removes the quarantined files beside path, and returns their number.
func RemoveQuarantined(path string) (int, error) {
	bad, err := listBad(path)
	if err != nil {
		return 0, fmt.Errorf("remove quarantined files: %w", err)
	}
	for i, n := range bad {
		if err := os.Remove(badPath(path, n)); err != nil {
			return i, fmt.Errorf("remove quarantined files: %w", err)
		}
	}
	if len(bad) == 0 {
		return 0, nil
	}
	return len(bad), syncDir(path)
}

// EraseUpTo applies the erasures up to a sequence of the log to a file that no worker serves. It
// removes a file at an earlier position and scrubs any other. It also removes an untrusted file,
// for which bad is not nil, and all quarantined files. It leaves a file in use: the process that
// holds it erases there.
func EraseUpTo(o Options, seq uint64) (bad *Quarantined, err error) {
	if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
		_, err = RemoveQuarantined(o.Path)
		return nil, err
	}
	s, bad, err := Open(o)
	if errors.Is(err, ErrInUse) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if bad == nil && s.Position().Cursor >= seq {
		_, err = RemoveQuarantined(o.Path)
		return nil, errors.Join(err, s.Scrub(), s.Close())
	}
	if _, err = s.Discard(); err == nil {
		_, err = RemoveQuarantined(o.Path)
	}
	return bad, err
}

// Remove removes a file that no worker serves and the quarantined files beside it. A file in
// use is left, and the error is [ErrInUse]. Unlike [EraseUpTo] it reads nothing, so a process
// that opens the file does not wait.
func Remove(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		_, err = RemoveQuarantined(path)
		return err
	}
	f, err := openLocked(Options{Path: path})
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	_, err = RemoveQuarantined(path)
	if err = errors.Join(err, os.Remove(path), release(f)); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
