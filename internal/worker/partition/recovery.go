package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/outcomelog"
)

// open takes the partition over and brings its ledgers to the marker.
func (p *Partition) open(ctx context.Context) error {
	began := time.Now()
	if err := p.openStore(); err != nil {
		return err
	}
	claim := commit.Claim{
		Partition: p.ID, Owner: p.set.config.Owner, Config: p.set.config.Compaction.Hash(),
		LogCreated: p.set.config.Streams.Log.Created.UnixNano(),
		OnRetry:    p.retrying("commit"),
	}
	var found commit.Stored
	var err error
	if p.committer, found, err = commit.TakeOver(ctx, p.set.config.Commit, claim); err != nil {
		return err
	}
	failpoint.Pass("taken-over")
	log, err := p.awaitLog(ctx, found.Cursor) // after the take-over: no other worker moves the marker any more
	if err != nil {
		return err
	}
	if found.Seq > 0 && found.LogCreated != log.Created.UnixNano() {
		return ErrOtherLog
	}
	marker := position{seq: compaction.Seq(found.Cursor), chain: found.Chain, id: found.LastID, time: found.LastTime}
	end, lost, err := p.findTruncation(ctx, log, found)
	if err == nil && lost {
		marker, err = p.rollBackMarker(ctx, end, found.Cursor)
	}
	if err != nil {
		return err
	}
	if failpoint.IgnoreMarker() {
		marker = position{}
	}
	p.committed, p.markedAt, p.saved = marker.seq, time.Now(), time.Now()
	if p.decided, err = p.resume(ctx, log, marker); err != nil {
		return err
	}
	from := p.decided.seq
	replayed, err := p.replay(ctx, log, marker)
	if errors.Is(err, errOtherChain) && from > 0 {
		replayed, err = p.rebuild(ctx, log, marker, err)
	}
	if err != nil {
		return err
	}
	if err := p.pendingErasures(ctx); err != nil {
		return err
	}
	failpoint.Pass("replayed")
	p.set.served[p.ID].Store(p)
	p.caughtUp(observe.PartitionAcquired{
		Partition: p.ID, Epoch: p.committer.Epoch(), Cursor: marker.seq, Snapshot: compaction.Seq(p.snapshot), Replayed: replayed,
		Sessions: len(p.decider.Cache), Took: time.Since(began),
	})
	return nil
}

// rebuild sets a file aside that led to another hash than the marker's, and replays
// from the beginning of the log.
func (p *Partition) rebuild(ctx context.Context, log topology.StreamState, marker position, reason error) (replayed int, err error) {
	moved, err := p.store.Discard()
	if err != nil {
		return 0, err
	}
	p.quarantine(reason, moved)
	p.decider = decide.New(p.set.config.Compaction)
	p.decided, p.outcomesSeq, p.snapshot = position{}, 0, 0
	if err := p.openStore(); err != nil {
		return 0, err
	}
	return p.replay(ctx, log, marker)
}

// replay applies the events up to the marker as they were published, each under the
// config it was decided under. The log must have the marker's hash, if all of what
// lies behind the ledgers is still there.
func (p *Partition) replay(ctx context.Context, log topology.StreamState, marker position) (replayed int, err error) {
	if marker.seq <= p.decided.seq {
		p.end = p.decided
		return 0, nil
	}
	whole := log.First <= uint64(p.decided.seq)+1 && (p.decided.seq == 0 || p.decided.chain != 0)
	recorded, err := p.load(ctx)
	if err != nil {
		return 0, err
	}
	present := p.set.config.Compaction
	configs := outcomelog.NewConfigResolver(p.set.js, present.Parse)
	defer func() { p.decider.Config = present }()
	err = stream.ReadStream(ctx, p.set.js, topology.LogStream, events.LogFilter(p.ID), uint64(p.decided.seq)+1, uint64(marker.seq), func(m jetstream.Msg, _ uint64) error {
		e, at, err := decide.ReadEvent(m)
		if err != nil {
			return err
		}
		if p.decider.Config, err = configs.GetOr(ctx, recorded.ConfigAt(e.Seq), present, p.retrying("replay")); err != nil {
			return err
		}
		if err := p.decider.ApplyRecorded(e, recorded.Outcomes[e.Seq]); err != nil {
			p.retrying("replay")(err)
		}
		delete(recorded.Outcomes, e.Seq)
		if p.decider.LoadErr != nil {
			return p.decider.LoadErr
		}
		p.decider.Events++
		p.decided = positionAfter(p.decided, e, at)
		replayed++
		p.unsnapped.Add(1)
		if c := recorded.Chains[e.Seq]; whole && c != 0 && c != p.decided.chain {
			return errOtherChain
		}
		return p.checkpointReplay(ctx, whole)
	})
	if err != nil {
		return replayed, err
	}
	if whole && marker.chain != 0 && p.decided.chain != marker.chain {
		return replayed, p.otherChain(ctx, marker)
	}
	p.decided.seq, p.decided.chain = marker.seq, cmp.Or(marker.chain, p.decided.chain)
	p.end = p.decided
	return replayed, nil
}

var errOtherChain = errors.New("the log is not the one the outcomes were decided on: its hash differs at the marker; restore SESSIONS and OUTCOMES from one backup")

// ErrOtherLog reports that SESSIONS was created again after outcomes were committed.
var ErrOtherLog = errors.New("the outcomes belong to another log: SESSIONS was created again; purge OUTCOMES, or use another --data")

// load reads the outcomes published about events up to the marker.
func (p *Partition) load(ctx context.Context) (*outcomelog.Index, error) {
	r := &outcomelog.Index{}
	if p.truncated {
		r.Chains = map[compaction.Seq]uint64{}
	}
	err := stream.ReadStream(ctx, p.set.js, topology.OutcomesStream, events.OutcomeFilter(p.ID), p.outcomesSeq+1, p.committer.Fence(), func(m jetstream.Msg, _ uint64) error {
		if at, err := events.ParseOutcome(m.Subject()); err == nil && at.Kind != events.KindErased {
			if err := r.Add(at.Kind, m.Data()); err != nil {
				return fmt.Errorf("read %s: %w", m.Subject(), err)
			}
		}
		marker, ok, err := commit.ParseMarker(m.Headers())
		if ok {
			r.ApplyMarker(marker)
		}
		return err
	})
	return r, err
}
