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
	"compactd/internal/events"
)

var (
	// ErrHeld: another worker holds the lease.
	ErrHeld = errors.New("the lease is held by another worker")
	// ErrLeaseLost: the lease ended before it was renewed, or another worker has it.
	ErrLeaseLost = errors.New("the lease was lost")
)

// Holder names the worker that holds a lease.
type Holder struct {
	// Member is the name of the worker, which outlives a restart.
	Member string `json:"member"`
	// Owner is the process, as in the [commit.Claim].
	Owner string `json:"owner"`
}

// Lease is the right to take a partition over, until it ends. It keeps workers
// from disturbing one another and is no fence: only a [commit.Committer] is.
type Lease struct {
	Partition int
	Holder    Holder

	revision uint64
}

// Revision is that of the last write of the lease that was acknowledged: later writes have higher
// ones.
func (l *Lease) Revision() uint64 { return l.revision }

// Leases is the bucket of the leases, one for each partition.
type Leases struct{ bucket bucket }

// NewLeases returns the leases; a lease ends ttl after it was renewed last, in
// whole seconds, and the server looks once a second.
func NewLeases(js jetstream.JetStream, ttl time.Duration) *Leases {
	return &Leases{newBucket(js, topology.LeasesBucket, ttl)}
}

// Acquire takes the lease of a partition if it is free, or if the same member has
// it: then an earlier process left it behind. The caller sees to it that there is
// one process of a member at a time. [ErrHeld] when it is neither.
func (l *Leases) Acquire(ctx context.Context, partition int, h Holder) (*Lease, error) {
	e, err := l.bucket.get(ctx, strconv.Itoa(partition))
	if err != nil {
		return nil, fmt.Errorf("acquire lease %d: %w", partition, err)
	}
	if e.value != nil {
		if has, err := readHolder(e.value); err == nil && has.Member != h.Member {
			return nil, fmt.Errorf("acquire lease %d: %w: %s", partition, ErrHeld, has.Owner)
		} // an unreadable value holds nothing
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

// Renew extends a lease; one that has ended and that no worker took is taken
// again. [ErrLeaseLost]: another process has it. After any other error it may be
// extended, or not.
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
	e, err := l.bucket.get(ctx, strconv.Itoa(lease.Partition))
	if err != nil {
		return err
	}
	if e.value != nil {
		if has, err := readHolder(e.value); err != nil || has != lease.Holder {
			return ErrLeaseLost
		}
	}
	lease.revision = e.revision
	return l.write(ctx, lease)
}

func (l *Leases) write(ctx context.Context, lease *Lease) error {
	value, err := events.Marshal(lease.Holder)
	if err != nil {
		return err
	}
	revision, err := l.bucket.put(ctx, strconv.Itoa(lease.Partition), value, &lease.revision)
	if err == nil {
		lease.revision = revision
	}
	return err
}

// Release ends a lease, so that another worker need not wait. One that is lost
// already is no error.
func (l *Leases) Release(ctx context.Context, lease *Lease) error {
	err := l.bucket.remove(ctx, strconv.Itoa(lease.Partition), &lease.revision)
	if errors.Is(err, errMoved) {
		return nil
	}
	return jsapi.Wrap(err, "release lease %d", lease.Partition)
}

// Watch calls fn with the holder of every lease that is held, returns, and calls
// it with every change after that; the zero Holder means that a lease is free. The
// calls come one at a time, each with the revision of the lease, which may be lower than the
// one before: a copy of the bucket that is behind. After a call of onError changes may be missed: watch
// again. ctx bounds the start only.
func (l *Leases) Watch(ctx context.Context, fn func(partition int, h Holder, revision uint64), onError func(error)) (stop func(), err error) {
	return l.bucket.watch(ctx, func(e entry) {
		partition, err := strconv.Atoi(e.key)
		if err != nil {
			return // none of ours
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
	err := events.Unmarshal(value, &h)
	return h, jsapi.Wrap(err, "read lease")
}

// LeaseAge returns how long ago the lease of a partition was taken or renewed; false where no worker holds it.
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
