package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/erase"
	"compactd/internal/broker/retry"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// erasure is a session that has to go from the partition's streams and files.
type erasure struct {
	erase.Erasure
	resumed bool // an earlier try was cut off
	local   bool // another owner has done the rest: this worker's file is left
	copies  bool // and snapshots, which may have been made of the file since
	dropped bool // the same, if one of the sessions that have left it may be erased
}

// droppedAt is the erasure of what sessions of others have left in a file that a checkpoint has dropped them from.
func droppedAt(cursor uint64) erasure {
	return erasure{Erasure: erase.Erasure{Forgotten: events.Forgotten{Seq: cursor}}, local: true, dropped: true}
}

// eraser removes erased sessions from streams, file and snapshots, one at a time, and drops
// the ledgers of expired ones. It has a goroutine of its own, run; any may call add.
type eraser struct {
	scope
	file    *file
	ledgers *ledgers
	queue   *queue
	stores  erasable

	added chan struct{} // one slot
	mu    sync.Mutex    // guards the field below
	due   []erasure
}

// erasable is where a session is erased.
type erasable interface {
	// pending lists what was decided and not published as done.
	pending(context.Context) ([]erase.Erasure, error)
	// lastForget is the sequence of the last session.forget under the subjects of partitions, 0 for none.
	lastForget(context.Context, []int) (uint64, error)
	// streams overwrites what they hold of a session, and returns how many outcomes and events that were.
	streams(context.Context, erase.Erasure) (outcomes, log int64, err error)
	// exists reports whether the partition has a file; await returns when a checkpoint of an event is in it.
	exists() bool
	await(context.Context, compaction.Seq) error
	// scrub overwrites what no row of the file holds.
	scrub() (removed int64, err error)
	// hold lets no copy of the file be made until release, and copies removes those that there are.
	hold(context.Context) (release func(), err error)
	copies(context.Context) error
}

// stores are those of a partition's file, and of the server.
type stores struct{ *file }

func (s stores) pending(ctx context.Context) ([]erase.Erasure, error) {
	return erase.Pending(ctx, s.set.js, s.ID)
}

func (s stores) lastForget(ctx context.Context, in []int) (uint64, error) {
	return s.set.lastForget(ctx, in)
}

func (s stores) streams(ctx context.Context, e erase.Erasure) (outcomes, log int64, err error) {
	if outcomes, log, err = erase.Erase(ctx, s.set.js, e); err == nil {
		failpoint.Pass("streams-erased")
		s.set.Payloads.Invalidate()
	}
	return outcomes, log, err
}

func (s stores) hold(ctx context.Context) (release func(), err error) {
	return s.set.snapshots.hold(ctx)
}

func (s stores) copies(ctx context.Context) error { return s.set.snapshots.store.Erase(ctx) }

// lastForget is the sequence of the last session.forget under the subjects of partitions, 0 for none.
func (set *Set) lastForget(ctx context.Context, in []int) (uint64, error) {
	return erase.LastForget(ctx, set.config.Read, events.LoggedIn(in, events.KindForget, everySession)...)
}

// find lists what a new owner has to erase: what was decided and not published as done.
// Where nothing is, the file may still be from before, or from a worker that crashed before
// it had overwritten its pages.
func (e *eraser) find(ctx context.Context) error {
	pending, err := e.stores.pending(ctx)
	if err != nil {
		return err
	}
	for _, p := range pending {
		e.add(erasure{Erasure: p, resumed: true})
	}
	last, err := e.stores.lastForget(ctx, e.set.Table().Kin(e.ID))
	last = min(last, uint64(e.ledgers.position().seq)) // a later one is of another partition, or to be decided
	if err != nil || !e.stores.exists() || len(pending) > 0 || last == 0 {
		return err
	}
	if some, _ := e.ledgers.changed(); !some { // the file has no more than they have, and no checkpoint comes
		last = 0
	}
	e.add(erasure{Erasure: erase.Erasure{Forgotten: events.Forgotten{Seq: last}}, local: true})
	return nil
}

// add notes an erasure that is published as decided.
func (e *eraser) add(due erasure) {
	e.mu.Lock()
	e.due = append(e.due, due)
	e.mu.Unlock()
	retry.Wake(e.added)
}

// take removes and returns the oldest erasure; ok is false if none is due.
func (e *eraser) take() (due erasure, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ok = len(e.due) > 0; ok {
		due, e.due = e.due[0], e.due[1:]
	}
	return due, ok
}

// run erases the sessions that are due until ctx ends; the next owner erases the rest. Every renewEvery it calls
// sweep.
func (e *eraser) run(ctx context.Context) {
	tick := time.NewTicker(e.set.renewEvery())
	defer tick.Stop()
	for {
		for due, ok := e.take(); ok; due, ok = e.take() {
			if err := e.retry(ctx, "erase session", func() error {
				err := e.erase(ctx, due)
				due.resumed = true
				return err
			}); err != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-e.added:
		case <-tick.C:
			if err := e.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
				e.retrying("drop expired sessions")(err)
			}
		}
	}
}

// erase overwrites a session wherever the partition's owner reaches, and publishes that.
// The streams come first: what is left of a file can be made of them again.
func (e *eraser) erase(ctx context.Context, due erasure) (err error) {
	done := events.Erased{
		Header:   events.Header{V: events.Version, ID: "erased-" + due.ID},
		CausedBy: due.CausedBy, Seq: due.Seq, Resumed: due.resumed,
	}
	if !due.local {
		failpoint.Pass("forgotten")
		if done.Outcomes, done.Events, err = e.stores.streams(ctx, due.Erasure); err != nil {
			return err
		}
	}
	if due.dropped {
		if due.copies, err = e.erasedSinceSplit(ctx); err != nil {
			return err
		}
	}
	if done.Files, err = e.eraseFile(ctx, &due); err != nil || due.local {
		return err
	}
	e.queue.confirm(emitted{address: due.Address, outcome: compaction.Outcome{Kind: events.KindErased, Body: &done}})
	return nil
}

// erasedSinceSplit reports whether a session may have been erased while the file still had it, though another partition
// decided it.
func (e *eraser) erasedSinceSplit(ctx context.Context) (bool, error) {
	last, err := e.stores.lastForget(ctx, e.set.Table().Kin(e.ID))
	return last >= e.set.Table().Newest(e.ID).First && last > 0, err
}

// eraseFile overwrites what the partition's file holds of ledgers that are gone,
// once a checkpoint confirms that they are, and removes files that were quarantined. Then
// the snapshots go, unless another owner has seen to them; no copy of the file is
// made meanwhile.
func (e *eraser) eraseFile(ctx context.Context, due *erasure) (removed int64, err error) {
	if err := e.stores.await(ctx, compaction.Seq(due.Seq)); err != nil {
		return 0, err
	}
	release, err := e.stores.hold(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	if removed, err = e.stores.scrub(); err != nil {
		return removed, err
	}
	e.set.slot(e.ID).erasedElsewhere.Store(false) // what was received before it was served here is done
	failpoint.Pass("file-erased")
	if !due.local || due.copies {
		err = e.stores.copies(ctx)
	}
	return removed, err
}

// A worker keeps the files of partitions that it had and another has now, since they
// may come back. Of sessions that were erased meanwhile nothing may stay in them.

// pruneErased looks through the files once, before any partition is served.
func (set *Set) pruneErased(ctx context.Context) error {
	if _, err := os.Stat(set.config.Dir); set.config.Dir == "" || err != nil {
		return nil //nolint:nilerr // there is no file then
	}
	for id := range set.Count() {
		last, err := set.lastForget(ctx, set.Table().Kin(id))
		if err == nil && last > 0 {
			var bad *kv.Quarantined
			if bad, err = kv.EraseUpTo(set.fileOptions(id), last); bad != nil {
				reason := fmt.Errorf("%w; it is removed, since sessions were erased", bad.Reason)
				observe.Call(set.config.Listener.Quarantined, observe.Quarantined{Partition: id, Reason: reason, Moved: bad.Moved})
			}
		}
		if err != nil {
			return fmt.Errorf("remove erased sessions from the file of partition %d: %w", id, err)
		}
	}
	return nil
}

// everySession matches the address of any session in a filter.
var everySession = events.Address{Tenant: "*", Session: "*"}

// subscribeErasures follows the erasures that other workers decide, until stop is called. The files of all partitions
// that had the session are removed; a partition served here overwrites its file instead.
func (set *Set) subscribeErasures() (stop func(), err error) {
	if set.config.Dir == "" {
		return func() {}, nil
	}
	var busy sync.Mutex
	s, err := set.config.Commit.Subscribe(events.Published(events.KindErased, everySession), func(m *nats.Msg) {
		busy.Lock()
		defer busy.Unlock()
		var done events.Erased
		_, a, err := events.ParsePublished(m.Subject)
		if err != nil || events.Unmarshal(m.Data, &done) != nil {
			return
		}
		table := set.Table()
		for _, id := range table.Path(a) {
			set.erasedBy(table.At(a, done.Seq), id, done.Seq)
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

// erasedBy sees to the file of a partition when another one, or another owner, has erased a session that it had.
func (set *Set) erasedBy(decider, id int, seq uint64) {
	if id == decider && set.At(id) != nil {
		return // by its eraser
	}
	set.slot(id).erasedElsewhere.Store(true)
	switch p := set.At(id); {
	case p != nil:
		if id < decider { // it has not had the session since its split
			seq = 0
		}
		p.eraser.add(erasure{Erasure: erase.Erasure{Forgotten: events.Forgotten{Seq: seq}}, local: true, copies: true})
	case !set.IsAssigned(id):
		set.DropErasedFile(id)
	}
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
