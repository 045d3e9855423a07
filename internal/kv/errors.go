package kv

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"compactd/internal/events"
)

var (
	// ErrInUse: another process, or another Store, holds the file.
	ErrInUse = errors.New("in use by another worker")
	// ErrFull: the disk, a quota or a limit of the process leaves no space.
	ErrFull = errors.New("no space left for the file")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrReadOnly: the store was opened for reading.
	ErrReadOnly = errors.New("store is open for reading only")
)

// Reasons not to trust a file, for errors.Is on [Quarantined.Reason].
var (
	// ErrDamaged: pages, rows, count and digest do not match.
	ErrDamaged = errors.New("file is damaged")
	// ErrOtherPartition: the file was made for another partition, or for a number of partitions
	// from which the log cannot have grown.
	ErrOtherPartition = errors.New("file belongs to another partition")
	// ErrOtherFormat: another version of compactd wrote the file.
	ErrOtherFormat = errors.New("file has another format")
	// ErrOtherBoot: the file was open and not synced when the machine stopped.
	ErrOtherBoot = errors.New("file was left open by another boot")
)

// DamagedError reports that the file of an open store was damaged. An empty address means the whole
// file.
type DamagedError struct {
	Path    string
	Address events.Address
	Err     error
}

func (e *DamagedError) Error() string {
	if e.Address == (events.Address{}) {
		return fmt.Sprintf("%s is damaged: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s is damaged: ledger of %s: %v", e.Path, e.Address, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Is makes every DamagedError an [ErrDamaged].
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// WriteError reports that a checkpoint was not written. The store is unchanged.
type WriteError struct {
	Path string
	Full bool // the same as errors.Is(err, ErrFull)
	Err  error
}

func (e *WriteError) Error() string { return fmt.Sprintf("write %s: %v", e.Path, e.Err) }
func (e *WriteError) Unwrap() error { return e.Err }

// Is makes a WriteError for lack of space an [ErrFull].
func (e *WriteError) Is(target error) bool { return target == ErrFull && e.Full }

func writeError(path string, err error) error {
	return &WriteError{Path: path, Full: isFull(err), Err: err}
}

func isFull(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}, func(no syscall.Errno) bool {
		// bbolt formats the error of growing the file with %s, which hides it from errors.Is.
		return errors.Is(err, no) || strings.HasSuffix(err.Error(), no.Error())
	})
}

// panicError holds the value of a panic of bbolt, or the fault of an unreadable page.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guard runs do and turns a panic, or a memory fault in the mapped file, into an error. bbolt
// panics on a damaged page.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
		}
	}()
	return do()
}
