package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/stored"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/outcomelog"
)

// recovery brings file and ledgers to the marker, in the steps of run. It is used only in
// the opening phase.
type recovery struct {
	scope
	file         *file
	ledgers      *ledgers
	checkpointer *checkpointer

	release   func()               // ends the turn to be split off; set by awaitSplit, or nil
	begins    commit.Marker        // first marker of a partition that was split off; set by awaitSplit
	commits   *commit.Committer    // set by takeOver
	found     commit.Stored        // the marker before the take-over; set by takeOver
	log       topology.StreamState // set by findEnd
	marker    position             // end of the outcomes to apply as recorded; set by findEnd
	truncated bool                 // the log was truncated before the found marker
	from      kv.Position          // of the resumed file
	snapshot  uint64               // cursor of the snapshot that replaced the file, or 0
	replayed  int
}

// run performs the steps of the recovery in order.
func (r *recovery) run(ctx context.Context) error {
	defer func() {
		if r.release != nil {
			r.release()
		}
	}()
	for _, step := range []func(context.Context) error{r.openFile, r.awaitSplit, r.takeOver, r.findEnd, r.resume, r.replay} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openFile precedes the take-over: a worker that cannot lock the file must not take the
// partition from the worker that holds it.
func (r *recovery) openFile(context.Context) error { return r.file.open() }

// takeOver fences the former owner: it can no longer move the marker.
func (r *recovery) takeOver(ctx context.Context) (err error) {
	r.commits, r.found, err = commit.TakeOver(ctx, r.set.config.Commit, commit.Claim{
		Partition: r.ID, Owner: r.set.config.Owner, Config: r.set.Compaction().Hash(),
		LogCreated: r.set.config.Streams.Log.Created.UnixNano(),
		From:       r.begins,
		OnRetry:    r.retrying("commit"),
		OnForeign:  r.foreign,
	})
	if err != nil {
		return err
	}
	failpoint.Pass("taken-over")
	return r.set.learn(r.found.Split)
}

// findEnd finds the last event of the log that the committed outcomes are based on. After a truncation it
// rolls the marker back to it.
func (r *recovery) findEnd(ctx context.Context) (err error) {
	if r.log, err = r.awaitLog(ctx, r.found.Cursor); err != nil {
		return err
	}
	if r.found.Seq > 0 && r.found.LogCreated != r.log.Created.UnixNano() {
		return ErrOtherLog
	}
	r.marker = positionOfMarker(r.found.Marker)
	r.marker.split = r.set.Table().Newest(r.ID)
	end, truncated, err := r.findTruncation(ctx)
	if err == nil && truncated {
		err = r.rollBackMarker(ctx, end)
	}
	if failpoint.IgnoreMarker() {
		r.marker = position{}
	}
	return err
}

// resume finds the checkpoint to continue from. A file that does not match the log or the
// marker is quarantined: the log yields the same ledgers. A snapshot replaces the file if that
// saves a long replay.
func (r *recovery) resume(ctx context.Context) error {
	if r.file.exists() {
		reason, err := r.mismatch(ctx, r.file.position())
		if reason != nil {
			err = r.file.restart(reason)
		}
		if err == nil {
			err = r.restore(ctx)
		}
		if err != nil {
			return err
		}
	}
	r.begin()
	return nil
}

// begin sets the ledgers to the state of the file.
func (r *recovery) begin() {
	r.from = r.file.position()
	r.ledgers.resume(r.file.ledgers(), r.from, r.marker.split)
}

// mismatch returns the reason why a checkpoint cannot be used: the log is a different one or lost the
// events before the checkpoint, or OUTCOMES lost their outcomes. err reports a failed read of the
// log, which does not rule out the checkpoint.
func (r *recovery) mismatch(ctx context.Context, m kv.Position) (reason, err error) {
	switch {
	case m == kv.Position{}:
		return nil, nil // fresh
	case m.LogCreated != r.log.Created.UnixNano():
		return errors.New("checkpoint belongs to another stream"), nil
	case m.Cursor > r.log.Last || m.Cursor > uint64(r.marker.seq):
		return fmt.Errorf("checkpoint is at %d, the log ends at %d and the marker at %d", m.Cursor, r.log.Last, r.marker.seq), nil
	}
	if last := r.commits.LastSeq(); m.Outcomes >= last { // later outcomes are stored under sequences that the checkpoint counts as read
		return fmt.Errorf("checkpoint is at %d of %s, and the take-over at %d", m.Outcomes, topology.OutcomesStream, last), nil
	}
	found, err := r.eventAt(ctx, m.Cursor)
	if err == nil && found != nil && found.Time.UnixMilli() != m.LastTime {
		return fmt.Errorf("the event at the checkpoint has another time: %d, not %d", found.Time.UnixMilli(), m.LastTime), nil
	}
	return nil, err
}

// replay applies the events up to the marker with their recorded outcomes. If a file leads to a
// hash other than the marker's, it is quarantined and the log replayed from the beginning.
func (r *recovery) replay(ctx context.Context) error {
	err := r.applyRecorded(ctx)
	if errors.Is(err, errOtherChain) && r.from.Cursor > 0 {
		if err = r.file.restart(err); err != nil {
			return err
		}
		r.snapshot = 0
		r.begin()
		err = r.applyRecorded(ctx)
	}
	return err
}

// applyRecorded applies the events up to the marker, each under the config of its decision. If the log
// still has all events after the file's position, their hash must be the marker's.
func (r *recovery) applyRecorded(ctx context.Context) error {
	r.replayed = 0
	if uint64(r.marker.seq) <= r.from.Cursor {
		return nil
	}
	recorded := inherit(r.ID, r.set.Table(), r.from.Cursor)
	whole, err := r.unerased(r.from.Cursor, r.marker.seq, func(in []int) (uint64, error) { return r.set.lastErasure(ctx, in) })
	if err != nil {
		return err
	}
	var skipped commit.Foreign // without those after the marker, which the take-over reported
	for id := range recorded.by {
		own := id == r.ID
		index, err := outcomelog.ReadIndex(ctx, r.set.js, id, r.from.Outcomes+1, r.commits.LastSeq(), r.truncated || !own, func(f commit.Foreign) {
			if own && f.First < r.found.Seq {
				skipped.Add(f)
			}
		})
		if err != nil {
			return err
		}
		recorded.by[id] = index
	}
	recorded.compare(whole && r.log.First <= r.from.Cursor+1 && (r.from.Cursor == 0 || r.from.Chain != 0))
	r.marker.chain = cmp.Or(r.marker.chain, recorded.chainAt(r.marker.seq))
	if skipped.Messages > 0 {
		r.foreign(skipped)
	}
	present := r.set.Compaction()
	configs := outcomelog.NewConfigResolver(r.set.js, stored.ConfigReader(present.Counters()...))
	named := func(hash string) (*compaction.Config, error) {
		return configs.GetOr(ctx, hash, present, r.retrying("replay"))
	}
	log := stream.Selection{
		Stream: topology.LogStream, Filters: events.LogFilters(r.sources(r.from.Cursor)), From: r.from.Cursor + 1, UpTo: uint64(r.marker.seq),
	}
	err = stream.Read(ctx, r.set.js, log, func(m jetstream.Msg, _ uint64) error {
		e, at, err := decide.ReadEvent(m)
		if err != nil {
			return err
		}
		applied, err := recorded.apply(r.ledgers, e, at, named, r.retrying("replay"))
		if err != nil {
			return err
		}
		if applied {
			r.replayed++
		}
		return r.checkpointer.replayed(ctx, recorded.whole)
	})
	if err != nil {
		return err
	}
	if end := r.ledgers.position(); recorded.misses(end, r.marker) {
		return r.otherChain(ctx, end)
	}
	r.ledgers.reach(r.marker)
	return nil
}

var errOtherChain = errors.New("the log is not the one the outcomes were decided on: its hash differs at the marker; restore SESSIONS and OUTCOMES from one backup")

// ErrOtherLog reports that SESSIONS was created again after outcomes were committed.
var ErrOtherLog = errors.New("the outcomes belong to another log: SESSIONS was created again, as by nats stream restore; restore the server's store as a whole, or purge OUTCOMES and lose what was compacted")
