package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// keepBad limits the quarantined files per partition.
const keepBad = 3

// lockRetry is the interval between attempts to take a lock.
const lockRetry = 10 * time.Millisecond

// openLocked opens the file, creates it if it is missing, and locks it. Only LockWait ends its wait.
func openLocked(o Options) (*os.File, error) {
	if o.ReadOnly {
		f, err := os.Open(o.Path)
		if err != nil {
			return nil, err
		}
		return f, closeUnless(f, Lock(context.Background(), f, unix.LOCK_SH, o.LockWait))
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := closeUnless(f, Lock(context.Background(), f, unix.LOCK_EX, o.LockWait)); err != nil {
			return nil, err
		}
		// During the wait the previous holder may have quarantined this file.
		ok, err := stillAt(f, o.Path)
		if ok || err != nil {
			return f, closeUnless(f, err)
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// release unlocks and closes a file. Closing alone might not end the lock: after a panic of bbolt
// the mapping remains and keeps the file open.
func release(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return errors.Join(err, f.Close())
}

func closeUnless(f *os.File, err error) error {
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

func stillAt(f *os.File, path string) (bool, error) {
	ours, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(ours, there), err
}

// Lock waits for the flock, which belongs to the open file and ends with the process. It fails with
// [ErrInUse] after wait, and with the error of ctx. bbolt takes the same lock again, on the same open file.
func Lock(ctx context.Context, f *os.File, how int, wait time.Duration) error {
	for end := time.Now().Add(wait); ; {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock: %w", err)
		case time.Now().After(end):
			return ErrInUse
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock: %w", ctx.Err())
		case <-time.After(lockRetry):
		}
	}
}

// quarantine renames the file to <path>.bad-<n>, n rising, and removes the oldest such files
// beyond keepBad. The caller holds the lock.
func quarantine(path string) (string, error) {
	bad, err := listBad(path)
	if err != nil {
		return "", err
	}
	n := 1
	if len(bad) > 0 {
		n = bad[len(bad)-1] + 1
	}
	moved := badPath(path, n)
	if err := os.Rename(path, moved); err != nil {
		return "", err
	}
	bad = append(bad, n)
	for _, old := range bad[:max(0, len(bad)-keepBad)] {
		if err := os.Remove(badPath(path, old)); err != nil {
			return "", err
		}
	}
	return moved, syncDir(path)
}

func badPath(path string, n int) string { return path + ".bad-" + strconv.Itoa(n) }

// listBad returns the numbers of the quarantined files, in rising order.
func listBad(path string) ([]int, error) {
	dir, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var bad []int
	for _, e := range dir {
		tail, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".bad-")
		if n, err := strconv.Atoi(tail); ok && err == nil && n > 0 && strconv.Itoa(n) == tail {
			bad = append(bad, n)
		}
	}
	slices.Sort(bad)
	return bad, nil
}

// syncDir syncs the directory that contains path.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
