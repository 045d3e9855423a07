package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Buckets of the workers: which run, and which partitions each holds.
const (
	// LeasesBucket has a key for each partition that is held.
	LeasesBucket = "LEASES"
	// MembersBucket has a key for each running worker.
	MembersBucket = "MEMBERS"
)

// deleteMarkerTTL is how long the server keeps the delete marker of a key. A watch that was
// interrupted for longer may miss it, so a watch begins again after an interruption.
const deleteMarkerTTL = time.Hour

// Headers of key-value buckets.
const (
	headerTTL          = "Nats-TTL"
	headerOperation    = "KV-Operation"
	headerMarkerReason = "Nats-Marker-Reason"
)

// bucketConfig is a bucket whose keys end by themselves. It is on disk like the
// streams: a server restart must not free every lease.
func bucketConfig(name, description string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: name, Description: description, History: 1,
		Storage: jetstream.FileStorage, Replicas: replicas, LimitMarkerTTL: deleteMarkerTTL,
	}
}

// ensureBucket makes a bucket, or checks the one that is there.
func ensureBucket(ctx context.Context, js jetstream.JetStream, c jetstream.KeyValueConfig) ([]Mismatch, error) {
	_, err := js.CreateKeyValue(ctx, c)
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		if noRoom(err) {
			return nil, &StorageError{"create bucket " + c.Bucket, 1, err}
		}
		return nil, fmt.Errorf("create bucket %s: %w", c.Bucket, err)
	}
	s, err := js.Stream(ctx, streamOf(c.Bucket))
	if err != nil {
		return nil, fmt.Errorf("look up bucket %s: %w", c.Bucket, err)
	}
	return checkBucket(s.CachedInfo().Config), nil
}

// checkBucket finds what would keep leases from ending, or end them early.
func checkBucket(c jetstream.StreamConfig) []Mismatch {
	m := mismatches{stream: c.Name}
	m.equal("message TTL", c.AllowMsgTTL, true)
	m.equal("delete markers", c.SubjectDeleteMarkerTTL > 0, true)
	m.equal("max messages per subject", c.MaxMsgsPerSubject, int64(1))
	m.equal("max age", c.MaxAge, time.Duration(0))
	return m.list
}

func streamOf(bucket string) string { return "KV_" + bucket }

// bucket reads and writes keys that end ttl after they were written last. The KV
// of nats.go sets a TTL with the first revision only.
type bucket struct {
	js   jetstream.JetStream
	name string
	ttl  time.Duration // whole seconds
}

// newBucket rounds ttl up to what the server can count.
func newBucket(js jetstream.JetStream, name string, ttl time.Duration) bucket {
	return bucket{js, name, max(time.Second, (ttl + time.Second - 1).Truncate(time.Second))}
}

func (b *bucket) prefix() string { return "$KV." + b.name + "." }

// errMoved: the key is no longer at the revision that was expected.
var errMoved = errors.New("the key was changed by another writer")

// put writes a key and returns its revision; after is the revision it must have,
// nil for any.
func (b *bucket) put(ctx context.Context, key string, value []byte, after *uint64) (uint64, error) {
	return b.write(ctx, key, value, after, nats.Header{headerTTL: {b.ttl.String()}})
}

// remove ends a key, which must have the revision after; nil for any.
func (b *bucket) remove(ctx context.Context, key string, after *uint64) error {
	_, err := b.write(ctx, key, nil, after, nats.Header{headerTTL: {deleteMarkerTTL.String()}, headerOperation: {"DEL"}})
	return err
}

func (b *bucket) write(ctx context.Context, key string, value []byte, after *uint64, h nats.Header) (uint64, error) {
	if after != nil {
		h[headerFence] = []string{strconv.FormatUint(*after, 10)}
	}
	ack, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: b.prefix() + key, Data: value, Header: h})
	if hasCode(err, codeWrongLastSequence, codeWrongLastConstant) {
		return 0, errMoved
	}
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// entry is a key as it is now. Value is nil when it has ended, or never was.
type entry struct {
	key      string
	value    []byte
	revision uint64
}

// get reads a key from the leader.
func (b *bucket) get(ctx context.Context, key string) (entry, error) {
	m, err := getFromLeader(ctx, b.js.Conn(), streamOf(b.name), getRequest{LastFor: b.prefix() + key})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return entry{key: key}, nil
	}
	if err != nil {
		return entry{}, err
	}
	var h nats.Header
	if len(m.Header) > 0 {
		if h, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return entry{}, fmt.Errorf("read key %s: %w", key, err)
		}
	}
	return newEntry(key, m.Data, m.Seq, h), nil
}

func newEntry(key string, value []byte, revision uint64, h nats.Header) entry {
	if len(h[headerOperation]) > 0 || len(h[headerMarkerReason]) > 0 {
		value = nil
	}
	return entry{key, value, revision}
}

// watch calls fn with every key there is, returns when it has, and goes on with
// every change, one at a time, until stop. ctx bounds the start only. After a call
// of onError changes may be missed: watch again.
func (b *bucket) watch(ctx context.Context, fn func(entry), onError func(error)) (stop func(), err error) {
	r, err := openReader(ctx, b.js, streamOf(b.name), jetstream.ConsumerConfig{
		FilterSubjects: []string{b.prefix() + ">"}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", b.name, err)
	}
	begun := make(chan struct{})
	left := r.pending() // of the beginning; owned by the order filter from here on
	if left == 0 {
		close(begun)
	}
	r.handle(func(m jetstream.Msg, md *jetstream.MsgMetadata) error {
		fn(newEntry(strings.TrimPrefix(m.Subject(), b.prefix()), m.Data(), md.Sequence.Stream, m.Headers()))
		if left == 0 {
			return nil
		}
		if left--; left == 0 || md.NumPending == 0 {
			left = 0
			close(begun)
		}
		return nil
	})
	r.onError = func(err error) { onError(fmt.Errorf("watch %s: %w", b.name, err)) }
	r.start()
	select {
	case <-begun:
		return r.stop, nil
	case <-ctx.Done():
		r.stop()
		return nil, fmt.Errorf("watch %s: %w", b.name, ctx.Err())
	}
}
