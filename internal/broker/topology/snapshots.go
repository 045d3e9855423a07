package topology

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// SnapshotsBucket is the object store of copies of ledger files, one for each
// partition. Any client of object stores can list and read it.
const SnapshotsBucket = "SNAPSHOTS"

// SnapshotsStream is the stream of the object store.
const SnapshotsStream = "OBJ_" + SnapshotsBucket

// snapshotsConfig returns the configuration of the object store. Its snapshots expire with the log, since an
// older one is useless.
func snapshotsConfig(maxAge time.Duration, replicas int) jetstream.ObjectStoreConfig {
	return jetstream.ObjectStoreConfig{
		Bucket: SnapshotsBucket, Description: "compactd: copies of ledger files",
		TTL: maxAge, Storage: jetstream.FileStorage, Replicas: replicas,
	}
}

// ensureSnapshots creates the store, or checks the existing one. It sets the maximum age
// to the log's.
func ensureSnapshots(ctx context.Context, js jetstream.JetStream, maxAge time.Duration, replicas int) ([]Mismatch, error) {
	_, err := js.CreateObjectStore(ctx, snapshotsConfig(maxAge, replicas))
	s, err := created(ctx, js, "object store "+SnapshotsBucket, SnapshotsStream, err)
	if err != nil {
		return nil, err
	}
	if bad := checkSnapshots(s.CachedInfo().Config); len(bad) > 0 {
		return bad, nil
	}
	return nil, update(ctx, js, s, func(c *jetstream.StreamConfig) bool {
		changed := c.MaxAge != maxAge
		c.MaxAge, c.Duplicates = maxAge, min(c.Duplicates, maxAge)
		return changed
	})
}

// checkSnapshots checks for settings that would lose snapshots, or prevent their replacement
// or erasure.
func checkSnapshots(c jetstream.StreamConfig) []Mismatch {
	m := mismatches{stream: c.Name}
	m.equal("storage", c.Storage, jetstream.FileStorage)
	m.equal("discard", c.Discard, jetstream.DiscardNew)
	m.equal("max messages per subject", max(c.MaxMsgsPerSubject, 0), int64(0))
	m.equal("rollup", c.AllowRollup, true)
	m.equal("deny purge", c.DenyPurge, false)
	m.equal("sealed", c.Sealed, false)
	return m.list
}
