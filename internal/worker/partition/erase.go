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
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// erasure is a session to erase from the partition's streams and files.
type erasure struct {
	erase.Erasure
	behind  uint64 // the file has dropped the session from its checkpoint at this event on
	resumed bool   // an earlier attempt did not finish
	local   bool   // only this worker's file: another owner erased the rest
	copies  bool   // with local: the snapshots too, which may be newer copies of the file
	dropped bool   // with local: the snapshots too, if a session that left the file may be erased
}

// droppedAt returns the erasure of sessions of other partitions from a file, after the checkpoint at cursor
// dropped the last of them.
func droppedAt(cursor uint64) erasure {
	return erasure{behind: cursor, local: true, dropped: true}
}

// eraser removes erased sessions from streams, file and snapshots, one at a time, and drops
// the ledgers of expired sessions. Its goroutine is run; any goroutine may call add.
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

// erasable are the places that a session is erased from.
type erasable interface {
	// pending lists the erasures that were decided and not published as done.
	pending(context.Context) ([]erase.Erasure, error)
	// lastForget returns the sequence of the last session.forget under the subjects of partitions, or 0.
	lastForget(context.Context, []int) (uint64, error)
	// streams overwrites a session in OUTCOMES and the log, and returns the number of overwritten messages.
	streams(context.Context, erase.Erasure) (outcomes, log int64, err error)
	// exists reports whether the partition has a file. await waits for a checkpoint that contains an event.
	exists() bool
	await(context.Context, measure.Seq) error
	// scrub overwrites the unused pages of the file and removes quarantined files.
	scrub() (removed int64, err error)
	// hold blocks copies of the file until release. copies removes the snapshots.
	hold(context.Context) (release func(), err error)
	copies(context.Context) error
}

// stores implements erasable with the partition's file and the server.
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
		s.set.Payloads.Erase(e.Address)
	}
	return outcomes, log, err
}

func (s stores) hold(ctx context.Context) (release func(), err error) {
	return s.set.snapshots.hold(ctx)
}

func (s stores) copies(ctx context.Context) error { return s.set.snapshots.store.Erase(ctx) }

// lastForget returns the sequence of the last session.forget under the subjects of partitions, or 0.
func (set *Set) lastForget(ctx context.Context, in []int) (uint64, error) {
	return erase.LastForget(ctx, set.config.Read, events.LoggedIn(in, events.KindForget, everySession)...)
}

// lastErasure is lastForget, with the last session.forget that a partition decided: the log may have lost it.
func (set *Set) lastErasure(ctx context.Context, in []int) (uint64, error) {
	last, err := set.lastForget(ctx, in)
	for _, p := range in {
		if err != nil {
			break
		}
		var decided uint64
		decided, err = erase.LastDecided(ctx, set.config.Read, p)
		last = max(last, decided)
	}
	return last, err
}

// find queues the erasures of a new owner: those decided and not published as done. Without any,
// the file may still be older than the last erasure, or be left by a worker that crashed before it
// overwrote the pages.
func (e *eraser) find(ctx context.Context) error {
	pending, err := e.stores.pending(ctx)
	if err != nil {
		return err
	}
	position := uint64(e.ledgers.position().seq)
	behind := position
	if some, _ := e.ledgers.changed(); !some { // the file is up to date, and no checkpoint follows to wait for
		behind = 0
	}
	for _, p := range pending {
		e.add(erasure{Erasure: p, behind: behind, resumed: true})
	}
	last, err := e.stores.lastForget(ctx, e.set.Table().Kin(e.ID))
	if err != nil || !e.stores.exists() || len(pending) > 0 || last == 0 || position == 0 {
		return err
	}
	e.add(erasure{behind: behind, local: true})
	return nil
}

// add queues an erasure that is published as decided.
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

// run erases the due sessions until ctx ends; the next owner erases the rest. It calls sweep soon after the
// partition was opened or a sweep failed, else every sweepEvery.
func (e *eraser) run(ctx context.Context) {
	soon := min(sweepSoon, e.set.sweepEvery())
	next := time.NewTimer(soon)
	defer next.Stop()
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
		case <-next.C:
			pause := e.set.sweepEvery()
			if err := e.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
				e.retrying("drop expired sessions")(err)
				pause = soon
			}
			next.Reset(pause)
		}
	}
}

// erase overwrites a session in streams, file and snapshots, and publishes session.erased.
// The streams come first: a file can be built from them again.
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

// erasedSinceSplit reports whether another partition may have erased a session while this partition's
// file still had it.
func (e *eraser) erasedSinceSplit(ctx context.Context) (bool, error) {
	last, err := e.stores.lastForget(ctx, e.set.Table().Kin(e.ID))
	return last >= e.set.Table().Newest(e.ID).First && last > 0, err
}

// eraseFile waits for the checkpoint that drops the session, overwrites the unused pages of the
// file and removes quarantined files. Then it removes the snapshots, unless another owner
// did. No copy of the file is made at the same time.
func (e *eraser) eraseFile(ctx context.Context, due *erasure) (removed int64, err error) {
	if err := e.stores.await(ctx, measure.Seq(due.behind)); err != nil {
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
	e.set.slot(e.ID).erasedElsewhere.Store(false) // this covers erasures received before the partition was served here
	failpoint.Pass("file-erased")
	if !due.local || due.copies {
		err = e.stores.copies(ctx)
	}
	return removed, err
}

// A worker keeps the files of partitions that moved to another worker, since they may come back.
// Sessions that were erased in between must not stay in them.

// pruneErased erases sessions from all files once, before any partition is served.
func (set *Set) pruneErased(ctx context.Context) error {
	if _, err := os.Stat(set.config.Dir); set.config.Dir == "" || err != nil {
		return nil //nolint:nilerr // no directory, no files
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

// subscribeErasures follows the erasures of other workers until stop is called. It drops the texts of the session,
// and removes the files of all partitions that had it; a partition served here overwrites its file instead.
func (set *Set) subscribeErasures() (stop func(), err error) {
	var busy sync.Mutex
	s, err := set.config.Commit.Subscribe(events.Published(events.KindErased, everySession), func(m *nats.Msg) {
		busy.Lock()
		defer busy.Unlock()
		var done events.Erased
		_, a, err := events.ParsePublished(m.Subject)
		if err != nil || codec.Unmarshal(m.Data, &done) != nil {
			return
		}
		set.Payloads.Erase(a)
		if set.config.Dir == "" {
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
		_ = s.Unsubscribe() // fails only on a closed connection
		busy.Lock()
		defer busy.Unlock()
	}, nil
}

// erasedBy removes a session from the file of a partition after another partition or owner erased it.
func (set *Set) erasedBy(decider, id int, seq uint64) {
	if id == decider && set.At(id) != nil {
		return // its own eraser erased the file
	}
	set.slot(id).erasedElsewhere.Store(true)
	switch p := set.At(id); {
	case p != nil:
		if id < decider { // it dropped the session at its split
			seq = 0
		}
		p.eraser.add(erasure{behind: seq, local: true, copies: true})
	case !set.IsAssigned(id):
		set.DropErasedFile(id)
	}
}

// DropErasedFile removes the file of a partition that this worker no longer serves, if one of its
// sessions was erased since. A file that is still in use is removed after it is closed.
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
		set.config.Listener.Retry(id, "remove old file of erased session", err)
	}
}
