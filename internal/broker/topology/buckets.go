package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
)

// Buckets of the workers: which run, which partitions each holds, what tenants have used, and their policies.
const (
	// LeasesBucket has a key for each partition that is held.
	LeasesBucket = "LEASES"
	// MembersBucket has a key for each running worker.
	MembersBucket = "MEMBERS"
	// SharesBucket has a key for each tenant that used models under a limit.
	SharesBucket = "SHARES"
	// PrefixesBucket has a key for the beginning of each history whose session has no name.
	PrefixesBucket = "PREFIXES"
	// PoliciesBucket has a key for each tenant whose policy an operator set, with its last revisions.
	PoliciesBucket = "POLICIES"
)

// policyRevisions is how many revisions of a policy are kept, the most that a bucket may have.
const policyRevisions = 64

// buckets lists every bucket with its purpose.
var buckets = []struct{ name, description string }{
	{LeasesBucket, "compactd: who holds which partition"},
	{MembersBucket, "compactd: running workers"},
	{SharesBucket, "compactd: what tenants have used of models"},
	{PrefixesBucket, "compactd: sessions by how their histories begin"},
	{PoliciesBucket, "compactd: policies of tenants"},
}

// historyOf is how many revisions of a key a bucket keeps.
func historyOf(bucket string) uint8 {
	if bucket == PoliciesBucket {
		return policyRevisions
	}
	return 1
}

// DeleteMarkerTTL is how long the server keeps the delete marker of a key. A watch that was
// interrupted for longer may miss it, so a watch begins again after an interruption.
const DeleteMarkerTTL = time.Hour

// bucketConfig is a bucket whose keys end by themselves. It is on disk like the
// streams: a server restart must not free every lease.
func bucketConfig(name, description string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: name, Description: description, History: historyOf(name),
		Storage: jetstream.FileStorage, Replicas: replicas, LimitMarkerTTL: DeleteMarkerTTL,
	}
}

// mostPrefixes is the most that the bucket of prefixes holds, of about 170 bytes each; then the oldest
// go. A history without a name whose prefix is gone begins a new session.
const mostPrefixes = 1 << 20

// ensureBucket makes a bucket, or checks the one that is there.
func ensureBucket(ctx context.Context, js jetstream.JetStream, c jetstream.KeyValueConfig) ([]Mismatch, error) {
	_, err := js.CreateKeyValue(ctx, c)
	s, err := created(ctx, js, "bucket "+c.Bucket, StreamOf(c.Bucket), err)
	if err != nil {
		return nil, err
	}
	config := s.CachedInfo().Config
	if c.Bucket == PrefixesBucket && config.MaxMsgs != mostPrefixes {
		config.MaxMsgs, config.Discard = mostPrefixes, jetstream.DiscardOld
		if s, err = js.UpdateStream(ctx, config); err != nil {
			return nil, jsapi.Wrap(err, "bound %s", config.Name)
		}
	}
	return checkBucket(s.CachedInfo().Config, historyOf(c.Bucket)), nil
}

// created returns the stream of a bucket that was created with err, or was there.
func created(ctx context.Context, js jetstream.JetStream, name, stream string, err error) (jetstream.Stream, error) {
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		if jsapi.NoRoom(err) {
			return nil, &StorageError{"create " + name, 1, err}
		}
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	s, err := js.Stream(ctx, stream)
	return s, jsapi.Wrap(err, "look up %s", name)
}

// checkBucket finds what would keep leases from ending, or end them early.
func checkBucket(c jetstream.StreamConfig, history uint8) []Mismatch {
	m := mismatches{stream: c.Name}
	m.equal("message TTL", c.AllowMsgTTL, true)
	m.equal("delete markers", c.SubjectDeleteMarkerTTL > 0, true)
	m.equal("max messages per subject", c.MaxMsgsPerSubject, int64(history))
	m.equal("max age", c.MaxAge, time.Duration(0))
	return m.list
}

// StreamOf returns the name of the stream that holds a key-value bucket.
func StreamOf(bucket string) string { return "KV_" + bucket }
