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
	"compactd/internal/compaction"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// copySuffix marks the copy of a ledger file that is on its way to the store, or
// from there.
const copySuffix = ".copy"

// snapshotShare bounds what snapshots cost: the upload of a partition takes at most
// one part in so many of the time.
const snapshotShare = 100

// snapshots puts copies of this worker's ledger files into the object store, from
// where a worker without them goes on.
type snapshots struct {
	set   *Set
	store *snapshot.Store
	slot  chan struct{} // taken for one upload: there is one at a time
}

func newSnapshots(set *Set) *snapshots {
	return &snapshots{set: set, store: snapshot.New(set.js), slot: make(chan struct{}, 1)}
}

// run takes a snapshot of every partition that moved, every SnapshotEvery until ctx
// ends.
func (s *snapshots) run(ctx context.Context) {
	rests := map[int]time.Time{} // by partition: not before
	retry.Tick(ctx, s.set.config.SnapshotEvery, func() {
		for id := range s.set.Count() {
			if p := s.set.At(id); p != nil && time.Now().After(rests[id]) {
				rests[id] = time.Now().Add(snapshotShare * s.take(ctx, p.checkpointer, 1))
			}
		}
	})
}

// BeforeHandOver takes a snapshot of a partition that another worker is to serve, while it is
// still served here, if the next owner would have far to go.
func (set *Set) BeforeHandOver(ctx context.Context, id int) {
	p, s := set.At(id), set.snapshots
	if p == nil || !s.enabled() || p.unsnapped() < int64(s.minLag()) {
		return // as nearly always: it must cost a hand-over nothing
	}
	ctx, cancel := context.WithTimeout(ctx, set.config.DrainTimeout/2)
	defer cancel()
	s.take(ctx, p.checkpointer, s.minLag())
}

// minLag is how many events of a partition are worth a snapshot: a checkpoint's. To
// replay fewer takes about as long as to put a snapshot, or to fetch one.
func (s *snapshots) minLag() int { return s.set.config.CheckpointEvents }

// enabled reports whether this worker takes snapshots.
func (s *snapshots) enabled() bool { return s.set.config.Dir != "" && s.set.config.SnapshotEvery > 0 }

// hold waits until no copy of a file is made, and lets none begin until release.
func (s *snapshots) hold(ctx context.Context) (release func(), err error) {
	select {
	case s.slot <- struct{}{}:
		return func() { <-s.slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take uploads the partition's last checkpoint, when it is at least so many events
// ahead of the newest snapshot, and returns how long the upload took.
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
	u, err := s.store.Begin(ctx, c.ID) // before the copy: what is erased meanwhile must not come back
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
	return observe.Snapshotted{Partition: c.ID, Cursor: compaction.Seq(m.Cursor), Bytes: info.Size()}, nil
}

// dropsAt reports whether the sessions of a child may be dropped from a file at a cursor, though the child begins with
// them there: where the partition was split. No copy of such a file is kept, as the child would take it for its own.
func (s scope) dropsAt(cursor uint64) bool {
	split := s.set.Table().Newest(s.ID)
	return split.First > 0 && split.Parent == s.ID && cursor+1 == split.First
}

// stillOwned is an error when another owner has taken the partition over, and lets it
// end. An owner that does so later finds the upload begun, and what it erases moves the
// fence of that; but an owner that was frozen might begin one after the erasure.
func (c *checkpointer) stillOwned(ctx context.Context) error {
	found, err := commit.LastMarker(ctx, c.set.config.Read, c.ID)
	if err == nil && found.Epoch > c.epoch {
		err = fmt.Errorf("%w: %s, epoch %d", commit.ErrFenced, found.Owner, found.Epoch)
		c.fail(err)
	}
	return err
}

// reading is a file at whose every read the fault tests may end the process.
type reading struct{ *os.File }

func (r reading) Read(b []byte) (int, error) {
	failpoint.Pass("snapshot-reading")
	return r.File.Read(b)
}

// lead is how many events, at most, the partition's last checkpoint is ahead of a
// snapshot: 0 when the snapshot is of a later owner, 1 or more when it is
// elsewhere.
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
// has the lock of the directory.
func (set *Set) RemoveCopies() error {
	if set.config.Dir == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(set.config.Dir, "p*.db"+copySuffix))
	for _, path := range found {
		err = cmp.Or(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("remove unfinished copies: %w", err)
	}
	return nil
}
