package coord

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Member is a running worker.
type Member struct {
	// Name is unique among the workers, 1 to 64 of [A-Za-z0-9_-]. It survives a
	// restart, so that the worker gets the same partitions again and has their files.
	Name string `json:"name"`
	// Owner is its process, as in the [commit.Claim].
	Owner string `json:"owner"`
}

// Members is the bucket of the running workers.
type Members struct{ bucket bucket }

// NewMembers returns the members. A membership ends ttl, in whole seconds, after its last
// heartbeat.
func NewMembers(js jetstream.JetStream, ttl time.Duration) *Members {
	return &Members{newBucket(js, topology.MembersBucket, ttl)}
}

// Heartbeat begins or renews a membership.
func (m *Members) Heartbeat(ctx context.Context, who Member) error {
	if !events.ValidID(who.Name) {
		return fmt.Errorf("join: name %q is not 1 to 64 of A-Z a-z 0-9 _ -", who.Name)
	}
	value, err := codec.Marshal(who)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	_, err = m.bucket.put(ctx, who.Name, value, nil)
	return jsapi.Wrap(err, "join")
}

// Leave ends a membership at once.
func (m *Members) Leave(ctx context.Context, name string) error {
	return jsapi.Wrap(m.bucket.remove(ctx, name, nil), "leave")
}

// All lists the running members, sorted by name.
func (m *Members) All(ctx context.Context) ([]Member, error) {
	live, failed := map[string]Member{}, error(nil)
	stop, err := m.Watch(ctx, func(who Member, running bool) {
		if delete(live, who.Name); running {
			live[who.Name] = who
		}
	}, func(err error) { failed = err })
	if err != nil {
		return nil, err
	}
	stop() // before live and failed are read
	return slices.SortedFunc(maps.Values(live), func(a, b Member) int { return cmp.Compare(a.Name, b.Name) }), failed
}

// Watch calls fn with every running member and returns. Then it calls fn with every
// heartbeat and every end, one at a time. After a call of onError changes may be
// missing: watch again. ctx limits only the start.
func (m *Members) Watch(ctx context.Context, fn func(who Member, running bool), onError func(error)) (stop func(), err error) {
	return m.bucket.watch(ctx, func(e entry) {
		who := Member{Name: e.key}
		if e.value != nil {
			if err := codec.Unmarshal(e.value, &who); err != nil || who.Name != e.key {
				onError(fmt.Errorf("read member %s: %w", e.key, err))
				return
			}
		}
		fn(who, e.value != nil)
	}, onError)
}
