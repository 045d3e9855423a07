package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/topology"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
)

// askSnapshot is how long a take-over tries to get a snapshot before it reads the log
// instead, and moveSnapshot how long one may be on its way, here or to the store.
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
func (p *Partition) restore(ctx context.Context, log topology.StreamState, marker position) error {
	own := p.store.Position()
	if behind := uint64(marker.seq) - own.Cursor; behind == 0 || own != (kv.Position{}) && p.share(behind) < p.set.snapshots.minLag() {
		return nil
	}
	path := p.path() + copySuffix
	for try := 1; ; try++ {
		found, err := p.findSnapshot(ctx, own, log, marker)
		if found == nil || err != nil {
			return p.withoutSnapshot(ctx, err)
		}
		if err = p.fetch(ctx, found, path); err == nil {
			break
		}
		p.retrying("restore snapshot")(errors.Join(err, os.Remove(path)))
		if !errors.Is(err, snapshot.ErrGone) || try == fetchTries {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(fullPause):
		}
	}
	failpoint.Pass("restoring")
	if err := errors.Join(p.store.Close(), os.Rename(path, p.path()), p.openStore()); err != nil {
		return err
	}
	failpoint.Pass("restored")
	p.snapshot = p.store.Position().Cursor
	return nil
}

// withoutSnapshot goes on from the file as it is, unless the caller is stopping.
func (p *Partition) withoutSnapshot(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		p.retrying("restore snapshot")(err)
	}
	return ctx.Err()
}

// findSnapshot returns the newest snapshot if it is worth fetching, else nil.
func (p *Partition) findSnapshot(ctx context.Context, own kv.Position, log topology.StreamState, marker position) (*snapshot.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, findSnapshotTime)
	defer cancel()
	found, err := p.set.snapshots.store.Newest(ctx, p.ID)
	if errors.Is(err, snapshot.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := found.Marker
	switch {
	case m.Cursor <= own.Cursor, own != (kv.Position{}) && p.share(m.Cursor-own.Cursor) < p.set.snapshots.minLag():
		return nil, nil
	case m.Epoch >= p.committer.Epoch():
		return nil, fmt.Errorf("the snapshot at %d is of epoch %d, which has not begun: it belongs to another history of this log", m.Cursor, m.Epoch)
	}
	reason, err := p.snapshotMismatch(ctx, positionOf(found), log, marker)
	if reason != nil {
		return nil, fmt.Errorf("the snapshot at %d does not fit: %w", m.Cursor, reason)
	}
	return found, err
}

// snapshotMismatch is fits for a snapshot, which must not miss events between itself and
// the log either.
func (p *Partition) snapshotMismatch(ctx context.Context, m kv.Position, log topology.StreamState, marker position) (reason, err error) {
	switch {
	case m.Cursor == uint64(marker.seq) && m.Chain != marker.chain && marker.chain != 0:
		return errOtherChain, nil
	case m.Cursor != uint64(marker.seq) && m.Cursor+1 < log.First:
		return fmt.Errorf("it is at %d, and the log begins at %d", m.Cursor, log.First), nil
	}
	return p.mismatch(ctx, m, log, marker)
}

// fetch writes a snapshot to path and verifies it.
func (p *Partition) fetch(ctx context.Context, s *snapshot.Snapshot, path string) error {
	ctx, cancel := context.WithTimeout(ctx, moveSnapshotTime)
	defer cancel()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = p.set.snapshots.store.Read(ctx, s, f)
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
	if m := store.Position(); m != positionOf(s) {
		err = fmt.Errorf("the snapshot is at %d, its metadata says %d", m.Cursor, s.Marker.Cursor)
	}
	return errors.Join(err, store.Close())
}

// positionOf is where the ledgers of a snapshot stand.
func positionOf(s *snapshot.Snapshot) kv.Position {
	m := s.Marker
	return kv.Position{
		Cursor: m.Cursor, Chain: m.Chain, LastID: m.LastID, LastTime: m.LastTime,
		LogCreated: m.LogCreated, Config: m.Config, Outcomes: s.Outcomes,
	}
}
