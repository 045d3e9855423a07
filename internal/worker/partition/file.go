package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"compactd/internal/broker/retry"
	"compactd/internal/compaction/measure"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/observe"
)

// file is the ledger file of a partition. Recovery opens and replaces it; afterwards any
// goroutine may call its methods. Without a directory there is no file, and the position is
// always zero.
type file struct {
	scope
	store *kv.Store     // nil without a directory
	moved chan struct{} // one slot: a checkpoint was written
}

// fileOptions returns the options to open a partition's file.
func (set *Set) fileOptions(id int) kv.Options {
	return kv.Options{
		Path:      filepath.Join(set.config.Dir, fmt.Sprintf("p%d.db", id)),
		Partition: id, Partitions: set.Count(), Sync: set.config.Sync,
	}
}

func (f *file) path() string { return f.set.fileOptions(f.ID).Path }

// open opens the file. An untrusted file is quarantined and replaced by a fresh one.
func (f *file) open() error {
	if f.set.config.Dir == "" {
		return nil
	}
	store, aside, err := kv.Open(f.set.fileOptions(f.ID))
	if err == nil && aside != nil {
		f.report(aside.Reason, aside.Moved)
	}
	f.store = store
	return err
}

// exists reports whether the partition has a file.
func (f *file) exists() bool { return f.store != nil }

// ledgers returns the store to load evicted ledgers from, or nil.
func (f *file) ledgers() decide.Store {
	if f.store == nil {
		return nil
	}
	return f.store
}

// position returns the position of the last checkpoint.
func (f *file) position() kv.Position {
	if f.store == nil {
		return kv.Position{}
	}
	return f.store.Position()
}

// restart quarantines the file, and opens a fresh one.
func (f *file) restart(reason error) error {
	if err := f.discard(reason); err != nil {
		return err
	}
	return f.open()
}

// discard closes and quarantines the file.
func (f *file) discard(reason error) error {
	moved, err := f.store.Discard()
	if err == nil {
		f.report(reason, moved)
	}
	return err
}

func (f *file) report(reason error, moved string) {
	observe.Call(f.set.config.Listener.Quarantined, observe.Quarantined{Partition: f.ID, Reason: reason, Moved: moved})
}

// replace replaces the file by the one at path.
func (f *file) replace(path string) error {
	return errors.Join(f.store.Close(), os.Rename(path, f.path()), f.open())
}

// checkpoint writes ledgers and their position.
func (f *file) checkpoint(m kv.Position, changes []kv.Change) error {
	err := f.store.Checkpoint(m, changes)
	if err == nil {
		retry.Wake(f.moved)
	}
	return err
}

// await waits until the file, if there is one, is at seq or later.
func (f *file) await(ctx context.Context, seq measure.Seq) error {
	for f.store != nil && measure.Seq(f.store.Position().Cursor) < seq {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.moved:
		}
	}
	return nil
}

// scrub overwrites the unused pages of the file and removes quarantined files.
func (f *file) scrub() (removed int64, err error) {
	if f.store == nil {
		return 0, nil
	}
	n, err := kv.RemoveQuarantined(f.path())
	return int64(n), errors.Join(err, f.store.Scrub())
}

// copy writes a copy of the last checkpoint to path.
func (f *file) copy(ctx context.Context, path string) (kv.Position, error) {
	return f.store.Copy(ctx, path)
}

func (f *file) close() error {
	if f.store == nil {
		return nil
	}
	return f.store.Close()
}
