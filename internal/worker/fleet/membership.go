package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"

	"compactd/internal/broker/coord"
	"compactd/internal/broker/retry"
)

// membership is the fleet as a worker has it: who lives, and who holds what. It may
// be behind; its content is a reason to try, and the lease decides.
type membership struct {
	changed chan struct{} // has one when something is new

	mu       sync.Mutex // guards the fields below
	live     map[string]coord.Member
	holders  map[int]written
	watchErr error // why changes may be missed; nil when none may
}

// written is a lease as the watch shows it.
type written struct {
	coord.Holder
	revision uint64
}

// byCopy reports whether another process with the name of this worker wrote the lease after this
// one had it at revision own, 0 for never. A stale copy of the bucket can show a write of the
// process before again, which has a lower revision.
func (w written) byCopy(self coord.Member, own uint64) bool {
	return w.Member == self.Name && w.Owner != self.Owner && own > 0 && w.revision > own
}

// watchMembership returns the present fleet, and updates it until stop. It signals changed on each
// change, and when a watch breaks.
func watchMembership(ctx context.Context, members *coord.Members, leases *coord.Leases, changed chan struct{}) (v *membership, stop func(), err error) {
	v = &membership{changed: changed, live: map[string]coord.Member{}, holders: map[int]written{}}
	stopMembers, err := members.Watch(ctx, v.member, v.fail)
	if err != nil {
		return nil, nil, err
	}
	stopLeases, err := leases.Watch(ctx, v.holder, v.fail)
	if err != nil {
		stopMembers()
		return nil, nil, err
	}
	return v, func() { stopMembers(); stopLeases() }, nil
}

func (v *membership) member(who coord.Member, lives bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.live[who.Name]; known == lives {
		return // a heartbeat
	}
	if delete(v.live, who.Name); lives {
		v.live[who.Name] = who
	}
	retry.Wake(v.changed)
}

func (v *membership) holder(partition int, h coord.Holder, revision uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.holders[partition]
	if v.holders[partition] = (written{h, revision}); was.Holder != h { // else a renewal
		retry.Wake(v.changed)
	}
}

func (v *membership) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watchErr = err
	retry.Wake(v.changed)
}

// members lists the names of those that live, self in any case.
func (v *membership) members(self string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	names := slices.Collect(maps.Keys(v.live))
	if _, known := v.live[self]; !known {
		names = append(names, self)
	}
	return names
}

// holderOf returns who holds a partition; a zero Holder means no worker.
func (v *membership) holderOf(partition int) written {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.holders[partition]
}

// err returns why changes may be missed, or nil.
func (v *membership) err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.watchErr
}
