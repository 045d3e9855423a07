package coord

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
)

// Headers of key-value buckets.
const (
	headerTTL          = "Nats-TTL"
	headerOperation    = "KV-Operation"
	headerMarkerReason = "Nats-Marker-Reason"
)

// bucket reads and writes keys that expire ttl after their last write. The KV of nats.go
// sets a TTL only with the first revision.
type bucket struct {
	js   jetstream.JetStream
	name string
	ttl  time.Duration // whole seconds
}

// newBucket rounds ttl up to whole seconds, the unit of the server.
func newBucket(js jetstream.JetStream, name string, ttl time.Duration) bucket {
	return bucket{js, name, max(time.Second, (ttl + time.Second - 1).Truncate(time.Second))}
}

func (b *bucket) prefix() string { return "$KV." + b.name + "." }

// errMoved: the key no longer has the expected revision.
var errMoved = errors.New("the key was changed by another writer")

// put writes a key and returns its new revision. after is the expected current revision, nil
// for any.
func (b *bucket) put(ctx context.Context, key string, value []byte, after *uint64) (uint64, error) {
	return b.write(ctx, key, value, after, nats.Header{headerTTL: {b.ttl.String()}})
}

// remove deletes a key. after is its expected revision, nil for any.
func (b *bucket) remove(ctx context.Context, key string, after *uint64) error {
	_, err := b.write(ctx, key, nil, after, nats.Header{headerTTL: {topology.DeleteMarkerTTL.String()}, headerOperation: {"DEL"}})
	return err
}

func (b *bucket) write(ctx context.Context, key string, value []byte, after *uint64, h nats.Header) (uint64, error) {
	if after != nil {
		h[jsapi.HeaderFence] = []string{strconv.FormatUint(*after, 10)}
	}
	ack, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: b.prefix() + key, Data: value, Header: h})
	if jsapi.HasCode(err, jsapi.CodeWrongLastSequence, jsapi.CodeWrongLastConstant) {
		return 0, errMoved
	}
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// entry is the state of a key. value is nil if the key expired or never existed.
type entry struct {
	key      string
	value    []byte
	revision uint64
}

func (b *bucket) get(ctx context.Context, key string) (entry, error) {
	m, err := jsapi.GetFromLeader(ctx, b.js.Conn(), topology.StreamOf(b.name), jsapi.GetRequest{LastFor: b.prefix() + key})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return entry{key: key}, nil
	}
	if err != nil {
		return entry{}, err
	}
	return newEntry(key, m.Data, m.Seq, m.Headers()), nil
}

func newEntry(key string, value []byte, revision uint64, h nats.Header) entry {
	if len(h[headerOperation]) > 0 || len(h[headerMarkerReason]) > 0 {
		value = nil
	}
	return entry{key, value, revision}
}

// watch calls fn with every existing key and returns. Then it calls fn with every
// change, one at a time, until stop. ctx limits only the start. After a call of
// onError changes may be missing: watch again.
func (b *bucket) watch(ctx context.Context, fn func(entry), onError func(error)) (stop func(), err error) {
	r, err := stream.OpenReader(ctx, b.js, topology.StreamOf(b.name), jetstream.ConsumerConfig{
		FilterSubjects: []string{b.prefix() + ">"}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", b.name, err)
	}
	begun := make(chan struct{})
	left := r.Pending() // existing keys still to come; from r.Start on only the handler uses it
	if left == 0 {
		close(begun)
	}
	r.Handle(func(m jetstream.Msg, md *jetstream.MsgMetadata) error {
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
	r.OnError = func(err error) { onError(fmt.Errorf("watch %s: %w", b.name, err)) }
	r.Start()
	select {
	case <-begun:
		return r.Stop, nil
	case <-ctx.Done():
		r.Stop()
		return nil, fmt.Errorf("watch %s: %w", b.name, ctx.Err())
	}
}
