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
	tick := time.NewTicker(s.set.config.SnapshotEvery)
	defer tick.Stop()
	rests := make([]time.Time, len(s.set.served)) // by partition: not before
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for id := range s.set.served {
			if p := s.set.served[id].Load(); p != nil && time.Now().After(rests[id]) {
				rests[id] = time.Now().Add(snapshotShare * s.take(ctx, p, 1))
			}
		}
	}
}

// beforeHandOver takes a snapshot of a partition that another worker is to serve, while it is
// still served here, if the next owner would have far to go.
func (s *snapshots) beforeHandOver(ctx context.Context, id int) {
	p := s.set.served[id].Load()
	if p == nil || !s.enabled() || p.unsnapped.Load() < int64(s.minLag()) {
		return // as nearly always: it must cost a hand-over nothing
	}
	ctx, cancel := context.WithTimeout(ctx, s.set.config.DrainTimeout/2)
	defer cancel()
	s.take(ctx, p, s.minLag())
}

// minLag is how many events of a partition are worth a snapshot: a checkpoint's. To
// replay fewer takes about as long as to put a snapshot, or to fetch one.
func (s *snapshots) minLag() int { return s.set.config.CheckpointEvents }

// enabled reports whether this worker takes snapshots.
func (s *snapshots) enabled() bool { return s.set.config.Dir != "" && s.set.config.SnapshotEvery > 0 }

// take uploads the partition's last checkpoint, when it is at least so many events
// ahead of the newest snapshot, and returns how long the upload took.
func (s *snapshots) take(ctx context.Context, p *Partition, least int) time.Duration {
	select {
	case s.slot <- struct{}{}:
		defer func() { <-s.slot }()
	case <-ctx.Done():
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, moveSnapshotTime)
	defer cancel()
	began := time.Now()
	done, err := s.upload(ctx, p, least)
	switch {
	case errors.Is(err, kv.ErrClosed), errors.Is(err, context.Canceled):
	case err != nil:
		p.retrying("snapshot")(err)
	case done.Bytes > 0:
		done.Took = time.Since(began)
		observe.Call(s.set.config.Listener.Snapshotted, done)
	}
	return done.Took
}

func (s *snapshots) upload(ctx context.Context, p *Partition, least int) (done observe.Snapshotted, err error) {
	events := p.unsnapped.Load()
	u, err := s.store.Begin(ctx, p.ID) // before the copy: what is erased meanwhile must not come back
	if err != nil || p.lead(u.Replaces()) < least {
		return done, err
	}
	if err := p.stillOwned(ctx); err != nil {
		return done, err
	}
	failpoint.Pass("snapshot-begun")
	path := p.path() + copySuffix
	m, err := p.store.Copy(ctx, path)
	if err != nil {
		return done, err
	}
	f, err := os.Open(path)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	info, err := f.Stat()
	if err != nil {
		return done, err
	}
	if err := u.Put(ctx, p.snapshotMarker(m), m.Outcomes, reading{f}); err != nil {
		return done, err
	}
	p.unsnapped.Add(-events)
	failpoint.Pass("snapshot-put")
	return observe.Snapshotted{Partition: p.ID, Cursor: compaction.Seq(m.Cursor), Bytes: info.Size()}, nil
}

// stillOwned is an error when another owner has taken the partition over, and lets it
// end. An owner that does so later finds the upload begun, and what it erases moves the
// fence of that; but an owner that was frozen might begin one after the erasure.
func (p *Partition) stillOwned(ctx context.Context) error {
	found, err := commit.LastMarker(ctx, p.set.config.Read, p.ID)
	if err == nil && found.Epoch > p.committer.Epoch() {
		err = fmt.Errorf("%w: %s, epoch %d", commit.ErrFenced, found.Owner, found.Epoch)
		p.fail(err)
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
// snapshot: 0 when the snapshot is of a later owner, 1 or more when it stands
// elsewhere.
func (p *Partition) lead(s *snapshot.Snapshot) int {
	m := p.store.Position()
	switch {
	case m == kv.Position{}:
		return 0
	case s == nil || s.Marker.LogCreated != m.LogCreated:
		return p.share(m.Cursor)
	case s.Marker.Epoch > p.committer.Epoch(), s.Marker.Cursor == m.Cursor:
		return 0
	case s.Marker.Cursor > m.Cursor:
		return 1 // the log was truncated
	default:
		return p.share(m.Cursor - s.Marker.Cursor)
	}
}

// share is how many of so many sequences of the log may be of one partition.
func (p *Partition) share(sequences uint64) int {
	return max(1, int(sequences)/p.set.config.Streams.Partitions)
}

// snapshotMarker describes a copy of the partition's file.
func (p *Partition) snapshotMarker(m kv.Position) commit.Marker {
	return commit.Marker{
		Cursor: m.Cursor, Owner: p.set.config.Owner, Epoch: p.committer.Epoch(), Config: m.Config, Chain: m.Chain,
		LastID: m.LastID, LastTime: m.LastTime, LogCreated: m.LogCreated,
	}
}

// removeUnfinishedCopies removes what a process that crashed was copying.
func removeUnfinishedCopies(dir string) error {
	if dir == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(dir, "p*.db"+copySuffix))
	for _, path := range found {
		err = cmp.Or(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("remove unfinished copies: %w", err)
	}
	return nil
}
