package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/snapshot"
	"compactd/internal/compaction/measure"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// copySuffix marks the copy of a ledger file during its upload, restoredSuffix one during its download: the upload of
// a partition may outlast its closing, and go on while it is opened again.
const (
	copySuffix     = ".copy"
	restoredSuffix = copySuffix + ".in"
)

// snapshotShare limits the cost of snapshots: uploads of a partition take at most one
// snapshotShare-th of the time.
const snapshotShare = 100

// snapshots puts copies of this worker's ledger files into the object store. A worker without a
// file continues from them.
type snapshots struct {
	set   *Set
	store *snapshot.Store
	slot  chan struct{} // one slot: held for one upload
}

// run takes a snapshot of every partition with a new checkpoint, every SnapshotEvery until ctx
// ends.
func (s *snapshots) run(ctx context.Context) {
	rests := map[int]time.Time{} // by partition: the earliest time of the next one
	retry.Tick(ctx, s.set.config.SnapshotEvery, func() {
		for id := range s.set.Count() {
			if p := s.set.At(id); p != nil && time.Now().After(rests[id]) {
				rests[id] = time.Now().Add(snapshotShare * s.take(ctx, p.checkpointer, 1))
			}
		}
	})
}

// BeforeHandOver takes a snapshot of a partition before it moves to another worker, if the next
// owner would otherwise have a long replay.
func (set *Set) BeforeHandOver(ctx context.Context, id int) {
	p, s := set.At(id), set.snapshots
	if p == nil || !s.enabled() || p.unsnapped() < int64(s.minLag()) {
		return // the common case; it must not delay a hand-over
	}
	ctx, cancel := context.WithTimeout(ctx, set.config.DrainTimeout/2)
	defer cancel()
	s.take(ctx, p.checkpointer, s.minLag())
}

// minLag is the number of events that justifies a snapshot: those of a checkpoint. A replay of
// fewer events takes about as long as an upload or a download.
func (s *snapshots) minLag() int { return s.set.config.CheckpointEvents }

// enabled reports whether this worker takes snapshots.
func (s *snapshots) enabled() bool { return s.set.config.Dir != "" && s.set.config.SnapshotEvery > 0 }

// hold waits for a running upload, and blocks further ones until release.
func (s *snapshots) hold(ctx context.Context) (release func(), err error) {
	select {
	case s.slot <- struct{}{}:
		return func() { <-s.slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take uploads the partition's last checkpoint if it is at least least events ahead of the
// newest snapshot. It returns the duration of the upload.
func (s *snapshots) take(ctx context.Context, c *checkpointer, least int) time.Duration {
	release, err := s.hold(ctx)
	if err != nil {
		return 0
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, moveSnapshotTime)
	defer cancel()
	began := time.Now()
	done, err := s.upload(ctx, c, least)
	switch {
	case errors.Is(err, kv.ErrClosed), errors.Is(err, context.Canceled):
	case err != nil:
		c.retrying("snapshot")(err)
	case done.Bytes > 0:
		done.Took = time.Since(began)
		observe.Call(s.set.config.Listener.Snapshotted, done)
	}
	return done.Took
}

func (s *snapshots) upload(ctx context.Context, c *checkpointer, least int) (done observe.Snapshotted, err error) {
	events := c.ledgers.unsnapped()
	u, err := s.store.Begin(ctx, c.ID) // before the copy: an erasure during the upload makes it fail
	if err != nil || c.lead(u.Replaces()) < least {
		return done, err
	}
	if err := c.stillOwned(ctx); err != nil {
		return done, err
	}
	failpoint.Pass("snapshot-begun")
	path := c.file.path() + copySuffix
	m, err := c.file.copy(ctx, path)
	if err != nil {
		return done, err
	}
	f, err := os.Open(path)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	if c.dropsAt(m.Cursor) {
		return done, nil
	}
	info, err := f.Stat()
	if err != nil {
		return done, err
	}
	if err := u.Put(ctx, c.snapshotMarker(m), m.Outcomes, reading{f}); err != nil {
		return done, err
	}
	c.ledgers.snapshotted(events)
	failpoint.Pass("snapshot-put")
	return observe.Snapshotted{Partition: c.ID, Cursor: measure.Seq(m.Cursor), Bytes: info.Size()}, nil
}

// dropsAt reports whether a file at a cursor may already lack the sessions of a child that begins at this cursor:
// the partition was split there. Such a copy is not uploaded, since the child would begin with it.
func (s scope) dropsAt(cursor uint64) bool {
	split := s.set.Table().Newest(s.ID)
	return split.First > 0 && split.Parent == s.ID && cursor+1 == split.First
}

// stillOwned returns an error and ends the partition if another owner has taken it over. A later
// owner's erasure moves the fence of an upload that has begun; without this check a worker that
// was suspended could begin one after the erasure.
func (c *checkpointer) stillOwned(ctx context.Context) error {
	found, err := commit.LastMarker(ctx, c.set.config.Read, c.ID)
	if err == nil && found.Epoch > c.epoch {
		err = fmt.Errorf("%w: %s, epoch %d", commit.ErrFenced, found.Owner, found.Epoch)
		c.fail(err)
	}
	return err
}

// reading passes a failpoint at every read, where fault tests may end the process.
type reading struct{ *os.File }

func (r reading) Read(b []byte) (int, error) {
	failpoint.Pass("snapshot-reading")
	return r.File.Read(b)
}

// lead returns the number of events, at most, by which the partition's last checkpoint is ahead of a
// snapshot: 0 for a snapshot of a later owner, 1 for a snapshot at a later cursor of a log that was
// truncated.
func (c *checkpointer) lead(s *snapshot.Snapshot) int {
	m := c.file.position()
	switch {
	case m == kv.Position{}:
		return 0
	case s == nil || s.Marker.LogCreated != m.LogCreated:
		return c.portion(m.Cursor)
	case s.Marker.Epoch > c.epoch, s.Marker.Cursor == m.Cursor:
		return 0
	case s.Marker.Cursor > m.Cursor:
		return 1 // the log was truncated
	default:
		return c.portion(m.Cursor - s.Marker.Cursor)
	}
}

// snapshotMarker describes a copy of the partition's file.
func (c *checkpointer) snapshotMarker(m kv.Position) commit.Marker {
	return commit.Marker{
		Cursor: m.Cursor, Owner: c.set.config.Owner, Epoch: c.epoch, Config: m.Config, Chain: m.Chain,
		LastID: m.LastID, LastTime: m.LastTime, LogCreated: m.LogCreated,
	}
}

// RemoveCopies removes copies of ledger files that a process left unfinished. The caller
// holds the lock of the directory.
func (set *Set) RemoveCopies() error {
	if set.config.Dir == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(set.config.Dir, "p*.db"+copySuffix+"*"))
	for _, path := range found {
		err = cmp.Or(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("remove unfinished copies: %w", err)
	}
	return nil
}
