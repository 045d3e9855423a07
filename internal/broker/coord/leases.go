package coord

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events/codec"
)

var (
	// ErrHeld: another worker holds the lease.
	ErrHeld = errors.New("the lease is held by another worker")
	// ErrLeaseLost: another process has taken the lease. One that ended and that no worker took is renewed.
	ErrLeaseLost = errors.New("the lease was lost")
)

// Holder identifies the worker that holds a lease.
type Holder struct {
	// Member is the name of the worker, which outlives a restart.
	Member string `json:"member"`
	// Owner is the process, as in the [commit.Claim].
	Owner string `json:"owner"`
}

// Lease is the right to take a partition over, until it ends. It keeps workers
// from disturbing one another. It is not a fence: a [commit.Committer] is.
type Lease struct {
	Partition int
	Holder    Holder

	revision uint64
}

// Revision returns the revision of the last acknowledged write of the lease. Revisions rise with each
// write.
func (l *Lease) Revision() uint64 { return l.revision }

// Leases is the bucket of the leases, one for each partition.
type Leases struct{ bucket bucket }

// NewLeases returns the leases. A lease ends ttl, in whole seconds, after its last renewal; the
// server checks once a second.
func NewLeases(js jetstream.JetStream, ttl time.Duration) *Leases {
	return &Leases{newBucket(js, topology.LeasesBucket, ttl)}
}

// Acquire takes the lease of a partition if it is free, or left by an earlier process of
// the same member; otherwise it returns [ErrHeld]. The caller ensures that only one process
// of a member runs at a time.
func (l *Leases) Acquire(ctx context.Context, partition int, h Holder) (*Lease, error) {
	e, err := l.bucket.get(ctx, strconv.Itoa(partition))
	if err != nil {
		return nil, fmt.Errorf("acquire lease %d: %w", partition, err)
	}
	if e.value != nil {
		if has, err := readHolder(e.value); err == nil && has.Member != h.Member {
			return nil, fmt.Errorf("acquire lease %d: %w: %s", partition, ErrHeld, has.Owner)
		} // an unreadable lease counts as free
	}
	lease := &Lease{Partition: partition, Holder: h, revision: e.revision}
	err = l.write(ctx, lease)
	if errors.Is(err, errMoved) {
		err = ErrHeld
	}
	if err != nil {
		return nil, fmt.Errorf("acquire lease %d: %w", partition, err)
	}
	return lease, nil
}

// Renew extends a lease. It takes an ended lease again if no other worker took it.
// [ErrLeaseLost]: another process has it. After any other error the lease may or may not be
// extended.
func (l *Leases) Renew(ctx context.Context, lease *Lease) error {
	err := l.write(ctx, lease)
	if errors.Is(err, errMoved) { // it has ended, or the answer to a renewal was lost
		err = l.regain(ctx, lease)
	}
	if errors.Is(err, errMoved) {
		err = ErrLeaseLost
	}
	return jsapi.Wrap(err, "renew lease %d", lease.Partition)
}

func (l *Leases) regain(ctx context.Context, lease *Lease) error {
	e, err := l.find(ctx, lease)
	if err != nil {
		return err
	}
	lease.revision = e.revision
	return l.write(ctx, lease)
}

// find reads the key of a lease that is held, or has ended. [ErrLeaseLost]: another process has it.
func (l *Leases) find(ctx context.Context, lease *Lease) (entry, error) {
	e, err := l.bucket.get(ctx, strconv.Itoa(lease.Partition))
	if err != nil || e.value == nil {
		return e, err
	}
	if has, err := readHolder(e.value); err != nil || has != lease.Holder {
		return e, ErrLeaseLost
	}
	return e, nil
}

func (l *Leases) write(ctx context.Context, lease *Lease) error {
	value, err := codec.Marshal(lease.Holder)
	if err != nil {
		return err
	}
	revision, err := l.bucket.put(ctx, strconv.Itoa(lease.Partition), value, &lease.revision)
	if err == nil {
		lease.revision = revision
	}
	return err
}

// Release ends a lease, so that another worker need not wait. It succeeds if the lease is
// already lost.
func (l *Leases) Release(ctx context.Context, lease *Lease) error {
	key := strconv.Itoa(lease.Partition)
	err := l.bucket.remove(ctx, key, &lease.revision)
	if errors.Is(err, errMoved) { // it has ended, or the answer to a renewal was lost
		var e entry
		if e, err = l.find(ctx, lease); e.value != nil && err == nil {
			err = l.bucket.remove(ctx, key, &e.revision)
		}
	}
	if errors.Is(err, errMoved) || errors.Is(err, ErrLeaseLost) {
		return nil
	}
	return jsapi.Wrap(err, "release lease %d", lease.Partition)
}

// Watch calls fn with the holder of every held lease and returns. Then it calls fn with every
// change; the zero Holder means that a lease is free. The calls run one at a time, each with the
// revision of the lease. A revision may be lower than the previous one, if the bucket's copy is behind its
// leader. After a call of onError changes may be missing: watch again. ctx limits only the start.
func (l *Leases) Watch(ctx context.Context, fn func(partition int, h Holder, revision uint64), onError func(error)) (stop func(), err error) {
	return l.bucket.watch(ctx, func(e entry) {
		partition, err := strconv.Atoi(e.key)
		if err != nil {
			return // not a lease
		}
		var h Holder
		if e.value != nil {
			if h, err = readHolder(e.value); err != nil {
				onError(err)
				return
			}
		}
		fn(partition, h, e.revision)
	}, onError)
}

func readHolder(value []byte) (Holder, error) {
	var h Holder
	err := codec.Unmarshal(value, &h)
	return h, jsapi.Wrap(err, "read lease")
}

// LeaseAge returns the time since the lease of a partition was taken or renewed; false if no worker holds it.
func LeaseAge(ctx context.Context, js jetstream.JetStream, partition int) (age time.Duration, held bool, err error) {
	bucket, err := js.KeyValue(ctx, topology.LeasesBucket)
	var lease jetstream.KeyValueEntry
	if err == nil {
		lease, err = bucket.Get(ctx, strconv.Itoa(partition))
	}
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, jetstream.ErrKeyNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("look up the lease of partition %d: %w", partition, err)
	}
	return max(time.Since(lease.Created()), 0), true, nil
}
