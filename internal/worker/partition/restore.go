package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/snapshot"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
)

// findSnapshotTime is how long a take-over tries to get a snapshot before it reads the log
// instead, and moveSnapshotTime how long one may be on its way, here or to the store.
const (
	findSnapshotTime = 10 * time.Second
	moveSnapshotTime = 5 * time.Minute
)

// fetchTries is how often a snapshot is fetched that seems to be gone: a newer one
// takes its place, or a cluster has no leader for a moment.
const fetchTries = 3

// restore puts the newest snapshot of the partition in the place of its file, when
// the file is fresh, or so old that replaying takes longer. A snapshot that does not
// fit, or cannot be had, is left: what it holds follows from the log.
func (r *recovery) restore(ctx context.Context) error {
	own := r.file.position()
	if behind := uint64(r.marker.seq) - own.Cursor; behind == 0 || own != (kv.Position{}) && r.portion(behind) < r.set.snapshots.minLag() {
		return nil
	}
	path, tries := r.file.path()+copySuffix, 0
	var found *snapshot.Snapshot
	err := r.retry(ctx, "restore snapshot", func() (err error) {
		if found, err = r.findSnapshot(ctx, own); found == nil || err != nil {
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

// findSnapshot returns the newest snapshot if it is worth fetching, else nil.
func (r *recovery) findSnapshot(ctx context.Context, own kv.Position) (*snapshot.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, findSnapshotTime)
	defer cancel()
	found, err := r.set.snapshots.store.Newest(ctx, r.ID)
	if errors.Is(err, snapshot.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at := fileOf(found)
	var reason error
	switch {
	case at.Cursor <= own.Cursor, own != (kv.Position{}) && r.portion(at.Cursor-own.Cursor) < r.set.snapshots.minLag():
		return nil, nil
	case found.Marker.Epoch >= r.fenced.Epoch():
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
		err = f.Sync() // its content states that it is on disk
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
	return errors.Join(err, store.Close())
}

// fileOf is the position of the ledgers of a snapshot.
func fileOf(s *snapshot.Snapshot) kv.Position {
	m := s.Marker
	return kv.Position{
		Cursor: m.Cursor, Chain: m.Chain, LastID: m.LastID, LastTime: m.LastTime,
		LogCreated: m.LogCreated, Config: m.Config, Outcomes: s.Outcomes,
	}
}
