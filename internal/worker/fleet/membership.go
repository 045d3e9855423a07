package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"

	"compactd/internal/broker/coord"
	"compactd/internal/broker/retry"
)

// membership is a worker's copy of the fleet: the running members, and the holders of leases. It
// may be outdated; the lease itself decides.
type membership struct {
	changed chan struct{} // one slot: the membership changed

	mu       sync.Mutex // guards the fields below
	live     map[string]coord.Member
	holders  map[int]written
	watchErr error // the failure of a watch, after which changes may be missing
}

// written is the last write of a lease that the watch delivered.
type written struct {
	coord.Holder
	revision uint64
}

// byCopy reports whether another process with this worker's name wrote the lease after this process
// had it at revision own (0: never had it). A stale copy of the bucket can show an older write of
// the previous process again, which has a lower revision.
func (w written) byCopy(self coord.Member, own uint64) bool {
	return w.Member == self.Name && w.Owner != self.Owner && own > 0 && w.revision > own
}

// watchMembership returns the membership, and updates it until stop. It signals changed after each
// change, and after a failure of a watch.
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
	if v.holders[partition] = (written{h, revision}); was.Holder != h { // not a renewal
		retry.Wake(v.changed)
	}
}

func (v *membership) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watchErr = err
	retry.Wake(v.changed)
}

// members returns the names of the running members. It always includes self.
func (v *membership) members(self string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	names := slices.Collect(maps.Keys(v.live))
	if _, known := v.live[self]; !known {
		names = append(names, self)
	}
	return names
}

// holderOf returns the holder of a partition; the zero Holder means no worker.
func (v *membership) holderOf(partition int) written {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.holders[partition]
}

// err returns the failure of a watch, or nil.
func (v *membership) err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.watchErr
}
