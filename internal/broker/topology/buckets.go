package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
)

// Buckets of the workers.
const (
	// LeasesBucket has a key for each held partition.
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

// policyRevisions is the number of kept revisions of a policy, the maximum of a bucket.
const policyRevisions = 64

// buckets lists every bucket with its purpose.
var buckets = []struct{ name, description string }{
	{LeasesBucket, "compactd: who holds which partition"},
	{MembersBucket, "compactd: running workers"},
	{SharesBucket, "compactd: what tenants have used of models"},
	{PrefixesBucket, "compactd: sessions by how their histories begin"},
	{PoliciesBucket, "compactd: policies of tenants"},
}

// historyOf returns the number of revisions of a key that a bucket keeps.
func historyOf(bucket string) uint8 {
	if bucket == PoliciesBucket {
		return policyRevisions
	}
	return 1
}

// DeleteMarkerTTL is the time that the server keeps the delete marker of a key. A watch that was
// interrupted for longer may miss it, so a watch begins again after an interruption.
const DeleteMarkerTTL = time.Hour

// bucketConfig returns the configuration of a bucket whose keys expire. It is on disk like the
// streams: a restart of the server must not free every lease.
func bucketConfig(name, description string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: name, Description: description, History: historyOf(name),
		Storage: jetstream.FileStorage, Replicas: replicas, LimitMarkerTTL: DeleteMarkerTTL,
	}
}

// mostPrefixes limits the keys in the bucket of prefixes, of about 170 bytes each; a full bucket drops the
// oldest. An unnamed history whose prefix was dropped begins a new session.
const mostPrefixes = 1 << 20

// ensureBucket creates a bucket, or checks the existing one.
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

// created returns the stream of a bucket after an attempt to create it, which returned err. An existing bucket
// is no failure.
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

// checkBucket finds settings that would keep keys from expiring, or expire them early.
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
