package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/erase"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/observe"
)

// A worker keeps the files of partitions that it had and another has now, since they
// may come back. Of sessions that were erased meanwhile nothing may stay in them.

// pruneErased looks through the files once, before any partition is served.
func (set *Set) pruneErased(ctx context.Context) error {
	if _, err := os.Stat(set.config.Dir); set.config.Dir == "" || err != nil {
		return nil //nolint:nilerr // there is no file then
	}
	for id := range set.Count() {
		last, err := erase.LastForget(ctx, set.config.Read, events.LoggedIn(set.Table().Sources(id, 0), events.KindForget, everySession)...)
		if err == nil && last > 0 {
			err = kv.EraseUpTo(set.fileOptions(id), last)
		}
		if err != nil {
			return fmt.Errorf("remove erased sessions from the file of partition %d: %w", id, err)
		}
	}
	return nil
}

// everySession matches the address of any session in a filter.
var everySession = events.Address{Tenant: "*", Session: "*"}

// subscribeErasures removes the file of a partition that another worker serves when that
// one has erased a session, until stop is called.
func (set *Set) subscribeErasures() (stop func(), err error) {
	if set.config.Dir == "" {
		return func() {}, nil
	}
	var busy sync.Mutex
	s, err := set.config.Commit.Subscribe(events.Published(events.KindErased, everySession), func(m *nats.Msg) {
		busy.Lock()
		defer busy.Unlock()
		_, a, err := events.ParsePublished(m.Subject)
		if id := set.Of(a); err == nil && set.At(id) == nil {
			set.slot(id).erasedElsewhere.Store(true)
			if !set.IsAssigned(id) {
				set.DropErasedFile(id)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to erasures: %w", err)
	}
	return func() {
		_ = s.Unsubscribe() // the connection may be gone, and then it is over too
		busy.Lock()
		defer busy.Unlock()
	}, nil
}

// DropErasedFile removes the file of a partition that this worker does not serve, if a
// session of it was erased since it did. One that is still being closed is removed
// when it is.
func (set *Set) DropErasedFile(id int) {
	if !set.slot(id).erasedElsewhere.Load() {
		return
	}
	err := kv.Remove(set.fileOptions(id).Path)
	if errors.Is(err, kv.ErrInUse) {
		return
	}
	set.slot(id).erasedElsewhere.Store(false)
	if err != nil {
		observe.Call(set.config.Listener.Retrying, observe.Retrying{Partition: id, Step: "remove old file of erased session", Err: err})
	}
}
