package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/snapshot"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
)

const (
	findSnapshotTime = 10 * time.Second // limit of the search for a snapshot; then a take-over reads the log
	moveSnapshotTime = 5 * time.Minute  // limit of one download or upload
	prepareTime      = time.Minute      // limit of a child's wait for a new snapshot of its parent
	prepareTryTime   = 2 * time.Second  // until the child repeats the request: the parent's owner may have changed
)

// fetchTries limits the attempts to fetch a snapshot that seems to be gone: a newer snapshot
// may have replaced it, or the cluster has no leader for a moment.
const fetchTries = 3

// restore replaces the file by the newest snapshot of the partition if the file is fresh, or so old
// that a replay takes longer than the download. It skips a snapshot that does not match the log or
// cannot be read: the log yields the same ledgers.
func (r *recovery) restore(ctx context.Context) error {
	own := r.file.position()
	if behind := uint64(r.marker.seq) - own.Cursor; behind == 0 || own != (kv.Position{}) && r.portion(behind) < r.set.snapshots.minLag() {
		return nil
	}
	return r.put(ctx, func(ctx context.Context) (*snapshot.Snapshot, error) { return r.findSnapshot(ctx, own) })
}

// prepare replaces a fresh file by the newest snapshot of the parent. It first requests a new snapshot, which
// the parent's owner takes if the newest one is far behind: sessions wait while the child applies the events
// after its snapshot.
func (r *recovery) prepare(ctx context.Context, parent int) error {
	if !r.file.exists() || r.file.position() != (kv.Position{}) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	err := retry.Every(splitPause).Do(limited, nil, func() error {
		one, cancel := context.WithTimeout(limited, prepareTryTime)
		defer cancel()
		_, err := r.set.config.Commit.RequestWithContext(one, prepareSubject(parent), nil)
		return err
	})
	if err != nil && ctx.Err() == nil {
		r.retrying("prepare split")(err)
	}
	return r.put(ctx, func(ctx context.Context) (*snapshot.Snapshot, error) {
		found, err := r.newest(ctx, parent)
		if found != nil && found.Marker.LogCreated != r.set.config.Streams.Log.Created.UnixNano() {
			return nil, err
		}
		return found, err
	})
}

// put replaces the file by the snapshot that find returns, if any.
func (r *recovery) put(ctx context.Context, find func(context.Context) (*snapshot.Snapshot, error)) error {
	path, tries := r.file.path()+restoredSuffix, 0
	var found *snapshot.Snapshot
	err := r.retry(ctx, "restore snapshot", func() (err error) {
		limited, cancel := context.WithTimeout(ctx, findSnapshotTime)
		defer cancel()
		if found, err = find(limited); found == nil || err != nil {
			return retry.Final(err)
		}
		err = r.fetch(ctx, found, path)
		tries++
		return retry.When(errors.Is(err, snapshot.ErrGone) && tries < fetchTries, err)
	})
	if err != nil && ctx.Err() == nil {
		r.retrying("restore snapshot")(err)
	}
	if err != nil || found == nil {
		return ctx.Err()
	}
	failpoint.Pass("restoring")
	if err := r.file.replace(path); err != nil {
		return err
	}
	failpoint.Pass("restored")
	r.snapshot = r.file.position().Cursor
	return nil
}

// newest returns the newest snapshot of a partition, or nil.
func (r *recovery) newest(ctx context.Context, id int) (*snapshot.Snapshot, error) {
	found, err := r.set.snapshots.store.Newest(ctx, id)
	if errors.Is(err, snapshot.ErrNone) {
		return nil, nil //nolint:nilnil // no snapshot
	}
	return found, err
}

// newestInherited returns the newest snapshot of the partition. Without one it returns the newest snapshot of
// an ancestor from before the split, or nil.
func (r *recovery) newestInherited(ctx context.Context) (*snapshot.Snapshot, error) {
	found, err := r.newest(ctx, r.ID)
	for _, s := range slices.Backward(r.set.Table().Lineage(r.ID)) {
		if found != nil || err != nil {
			break
		}
		if found, err = r.newest(ctx, s.Parent); found != nil && found.Marker.Cursor >= s.First {
			found = nil
		}
	}
	return found, err
}

// findSnapshot returns the newest snapshot if a fetch is worth it, else nil.
func (r *recovery) findSnapshot(ctx context.Context, own kv.Position) (*snapshot.Snapshot, error) {
	found, err := r.newestInherited(ctx)
	if found == nil || err != nil {
		return nil, err
	}
	at := fileOf(found)
	var reason error
	switch {
	case at.Cursor <= own.Cursor, own != (kv.Position{}) && r.portion(at.Cursor-own.Cursor) < r.set.snapshots.minLag():
		return nil, nil
	case found.Marker.Epoch >= r.commits.Epoch():
		return nil, fmt.Errorf("the snapshot at %d is of epoch %d, which has not begun: it belongs to another history of this log", at.Cursor, found.Marker.Epoch)
	case at.Cursor == uint64(r.marker.seq) && at.Chain != r.marker.chain && r.marker.chain != 0:
		reason = errOtherChain
	case at.Cursor != uint64(r.marker.seq) && at.Cursor+1 < r.log.First: // it misses events
		reason = fmt.Errorf("it is at %d, and the log begins at %d", at.Cursor, r.log.First)
	default:
		reason, err = r.mismatch(ctx, at)
	}
	if reason != nil {
		return nil, fmt.Errorf("the snapshot at %d does not fit: %w", at.Cursor, reason)
	}
	return found, err
}

// fetch writes a snapshot to path and verifies it.
func (r *recovery) fetch(ctx context.Context, s *snapshot.Snapshot, path string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, moveSnapshotTime)
	defer cancel()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = r.set.snapshots.store.Read(ctx, s, f)
	if err == nil {
		err = f.Sync() // the file carries the flag that it is on disk
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	store, _, err := kv.Open(kv.Options{Path: path, ReadOnly: true})
	if err != nil {
		return err
	}
	if m := store.Position(); m != fileOf(s) {
		err = fmt.Errorf("the snapshot is at %d, its metadata names %d", m.Cursor, s.Marker.Cursor)
	}
	if err = errors.Join(err, store.Close()); err != nil || s.Partition == r.ID {
		return err
	}
	return r.adopt(path)
}

// adopt turns the copy of an ancestor's file into a file of this partition. It drops the sessions that stay with
// the parent.
func (r *recovery) adopt(path string) error {
	o := r.set.fileOptions(r.ID)
	o.Path, o.Inherited = path, true
	store, aside, err := kv.Open(o)
	if err != nil {
		return err
	}
	if aside != nil {
		return errors.Join(aside.Reason, os.Remove(aside.Moved), store.Close())
	}
	birth := r.set.Table().Lineage(r.ID)
	for last := (events.Address{}); err == nil; {
		var found []events.Address
		if found, err = store.After(last, idleBatch); err != nil {
			break
		}
		var stay []kv.Change
		for _, a := range found {
			if last = a; !birth[len(birth)-1].Moves(a) {
				stay = append(stay, kv.Change{Address: a, Drop: true})
			}
		}
		if err = store.Checkpoint(store.Position(), stay); len(found) < idleBatch {
			break
		}
	}
	if err == nil {
		err = store.Scrub()
	}
	return errors.Join(err, store.Close())
}

// fileOf returns the position of the ledgers of a snapshot.
func fileOf(s *snapshot.Snapshot) kv.Position {
	m := s.Marker
	return kv.Position{
		Cursor: m.Cursor, Chain: m.Chain, LastID: m.LastID, LastTime: m.LastTime,
		LogCreated: m.LogCreated, Config: m.Config, Outcomes: s.Outcomes,
	}
}
