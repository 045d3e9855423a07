package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/observe"
)

// A worker keeps the files of partitions that it had and another has now, since they
// may come back. Of sessions that were forgotten meanwhile nothing may stay in them.

// pruneErased looks through the files once, before any partition is served.
func (w *Worker) pruneErased(ctx context.Context) error {
	if _, err := os.Stat(w.config.Dir); w.config.Dir == "" || err != nil {
		return nil //nolint:nilerr // there is no file then
	}
	for id := range w.config.Streams.Partitions {
		last, err := broker.LastForget(ctx, w.config.Read, id, everySession)
		if err == nil && last > 0 {
			err = kv.EraseUpTo(w.fileOptions(id), last)
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
func (w *Worker) subscribeErasures() (stop func(), err error) {
	if w.config.Dir == "" {
		return func() {}, nil
	}
	var busy sync.Mutex
	s, err := w.config.Commit.Subscribe(events.Published(events.KindErased, everySession), func(m *nats.Msg) {
		busy.Lock()
		defer busy.Unlock()
		_, a, err := events.ParsePublished(m.Subject)
		id := events.PartitionOf(a, w.config.Streams.Partitions)
		if err == nil && w.served[id].Load() == nil {
			w.erasedElsewhere[id].Store(true)
			if !w.assigned[id].Load() {
				w.dropErasedFile(id)
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

// dropErasedFile removes the file of a partition that this worker does not serve, if a
// session of it was erased since it did. One that is still being closed is removed
// when it is.
func (w *Worker) dropErasedFile(id int) {
	if !w.erasedElsewhere[id].Load() {
		return
	}
	err := kv.Remove(w.fileOptions(id).Path)
	if errors.Is(err, kv.ErrInUse) {
		return
	}
	w.erasedElsewhere[id].Store(false)
	if err != nil {
		observe.Call(w.config.Listener.Retrying, observe.Retrying{Partition: id, Step: "remove old file of erased session", Err: err})
	}
}
