package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/payload"
)

// fullPause is how long a commit waits that found no room in the store.
const fullPause = time.Second

// While a partition is more than a backlog of events behind, commits come at most
// every catchUpPause, until it has caught up: many small ones would hold up the
// reading they wait for.
const (
	backlog      = 1000
	catchUpPause = 100 * time.Millisecond
)

// linger lets outcomes gather while there is more to read; false means that ctx ended.
func (p *Partition) linger(ctx context.Context) bool {
	d := time.Until(p.markedAt.Add(catchUpPause))
	if d <= 0 {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-p.logEmpty:
		return true
	case <-time.After(d):
		return true
	}
}

// commitLoop commits what is decided until ctx ends or the partition fails; the
// commits themselves may last as long as work.
func (p *Partition) commitLoop(ctx, work context.Context) error {
	tick := time.NewTicker(p.set.config.MarkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-p.failed:
			return err
		case <-p.wake:
			if p.behind.Load() && !p.linger(ctx) {
				return nil
			}
		case <-tick.C:
		}
		if p.due() {
			if err := p.collect(); err != nil {
				return err
			}
			if failpoint.CheckpointEarly() {
				p.save(work)
				p.background.Wait()
			}
		}
		if err := p.commitQueue(work); err != nil {
			return err
		}
		p.save(work)
	}
}

// commitQueue empties the queue, and marks a cursor that moved without outcomes
// when it is time.
func (p *Partition) commitQueue(ctx context.Context) error {
	for !p.handOverDue.Load() {
		b, err := p.batch(ctx)
		if err != nil {
			return err
		}
		if b.groups == 0 && !p.wantsMarker(b.end) {
			return nil
		}
		if err := p.commit(ctx, b); err != nil {
			return err
		}
		if b.groups == 0 {
			return nil
		}
	}
	return nil
}

// wantsMarker reports whether a marker of its own is due.
func (p *Partition) wantsMarker(end position) bool {
	age := time.Since(p.markedAt)
	if end.seq <= p.committed {
		return !p.markedAt.IsZero() && age >= p.set.renewEvery()
	}
	waits := p.pending != nil && p.pending.end.seq > p.committed // a checkpoint wants it
	return waits || age >= p.set.config.MarkEvery
}

// drain commits everything that is decided, and a marker at its end.
func (p *Partition) drain(ctx context.Context) error {
	failpoint.Pass("draining")
	p.markedAt = time.Time{}
	if err := p.commitQueue(ctx); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// batch is what one commit stores.
type batch struct {
	groups   int // of the queue
	messages []commit.Message
	emitted  []emitted
	bytes    int
	end      position
}

// rendered is a group as it is committed.
type rendered struct {
	end      compaction.Seq // of the group
	messages []commit.Message
	emitted  []emitted
	bytes    int
}

// batch renders the head of the queue, up to the bounds of one commit. It ends
// at the boundary of an event. What does not fit any more is for the next one.
func (p *Partition) batch(ctx context.Context) (batch, error) {
	p.mu.Lock()
	queue, b := p.queue, batch{end: p.end}
	p.mu.Unlock()
	for _, g := range queue {
		if b.groups > 0 && p.handOverDue.Load() {
			break
		}
		r := p.carried
		if p.carried = nil; r == nil || r.end != g.end.seq {
			var err error
			if r, err = p.render(ctx, g); err != nil {
				return batch{}, err
			}
		}
		if b.groups > 0 && (len(b.messages)+len(r.messages) > commit.MaxBatch || b.bytes+r.bytes > p.allowance) {
			p.carried = r
			break
		}
		b.groups++
		b.messages = append(b.messages, r.messages...)
		b.emitted = append(b.emitted, r.emitted...)
		b.bytes += r.bytes
	}
	if b.groups < len(queue) {
		b.end = queue[b.groups-1].end
	}
	return b, nil
}

func (p *Partition) render(ctx context.Context, g group) (*rendered, error) {
	r := &rendered{end: g.end.seq, emitted: slices.Clone(g.outcomes)}
	for i := range r.emitted {
		t := &r.emitted[i]
		body, err := p.renderOutcome(ctx, t)
		if body == nil {
			return nil, err
		}
		if err != nil {
			p.retrying("render")(err)
		}
		t.outcome.View = nil
		r.messages = append(r.messages, commit.Message{Subject: decide.SubjectOf(p.ID, t.address, t.outcome), Data: body})
		r.bytes += len(body)
	}
	return r, nil
}

// renderOutcome writes the payload of an outcome, without messages if its tenant is over a
// bound.
func (p *Partition) renderOutcome(ctx context.Context, t *emitted) (data []byte, err error) {
	c, ok := t.outcome.Body.(*events.Compacted)
	q, tenant := p.set.quotas, t.address.Tenant
	if !ok || t.outcome.View == nil {
		data, _, err = p.set.Payloads.Outcome(ctx, t.address, t.outcome, connect.MaxPayload(p.set.config.Commit))
		return data, err
	}
	p.countHour(ctx)
	if t.omitted = q.Over(tenant, 1); t.omitted == "" {
		if data, t.omitted, err = p.renderWhole(ctx, t, c); data == nil {
			return nil, err
		}
		if t.omitted == "" {
			t.omitted = q.Over(tenant, int64(len(data)))
		}
	}
	if t.omitted != "" && t.omitted != observe.OmittedSize && t.omitted != observe.OmittedText {
		if data, err = payload.WithoutMessages(c, payload.LimitNote()); err != nil {
			return nil, err
		}
	}
	q.Charge(p.ID, tenant, int64(len(data)))
	return data, err
}

// renderWhole renders a compaction with its messages, once there is memory for it.
func (p *Partition) renderWhole(ctx context.Context, t *emitted, c *events.Compacted) (data []byte, omitted string, err error) {
	release, err := p.set.rendering.acquire(ctx, c)
	if err != nil {
		return nil, "", err
	}
	defer release()
	return p.set.Payloads.Outcome(ctx, t.address, t.outcome, connect.MaxPayload(p.set.config.Commit))
}

// countHour reads back what the partition's tenants have had stored, once.
func (p *Partition) countHour(ctx context.Context) {
	if p.counted {
		return
	}
	if err := p.set.quotas.Serve(ctx, p.ID, p.committer.Fence()); err != nil {
		p.retrying("count outcomes")(err)
		return
	}
	p.counted = true
}

// commit stores a batch and takes it off the queue. It waits while the store is
// full.
func (p *Partition) commit(ctx context.Context, b batch) error {
	failpoint.Pass("rendered")
	began := time.Now()
	for {
		err := p.committer.Commit(ctx, b.messages, p.marker(b.end))
		if _, full := errors.AsType[*commit.StoreFullError](err); !full {
			if err != nil {
				return err
			}
			break
		}
		p.retrying("commit")(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(fullPause):
		}
	}
	failpoint.Pass("committed")
	p.committed, p.markedAt = b.end.seq, time.Now()
	p.mu.Lock()
	for i := range p.queue[:b.groups] {
		p.queued -= p.queue[i].weight()
	}
	clear(p.queue[:b.groups]) // or their views would live as long as the slice
	p.queue = p.queue[b.groups:]
	p.space.Broadcast()
	p.mu.Unlock()
	p.eraseForgotten(b)
	p.reportCommit(b, time.Since(began))
	return nil
}

func (p *Partition) marker(at position) commit.Marker {
	return commit.Marker{
		Cursor: uint64(at.seq), Chain: at.chain, LastID: at.id, LastTime: at.time,
		Config: p.set.config.Compaction.Hash(), LogCreated: p.set.config.Streams.Log.Created.UnixNano(),
	}
}

// reportCommit passes a commit on to the listener.
func (p *Partition) reportCommit(b batch, took time.Duration) {
	l := &p.set.config.Listener
	observe.Call(l.Committed, observe.Committed{Partition: p.ID, Cursor: b.end.seq, Outcomes: len(b.messages), Bytes: b.bytes, Took: took})
	for _, t := range b.emitted {
		for _, n := range events.NotesOf(t.outcome.Body) {
			observe.Call(l.Noted, observe.Noted{Partition: p.ID, Address: t.address, Note: n})
		}
		switch body := t.outcome.Body.(type) {
		case *events.Compacted:
			observe.Call(l.Compacted, observe.Compacted{Partition: p.ID, Address: t.address, Body: body, Omitted: t.omitted})
		case *events.Rejected:
			observe.Call(l.Rejected, observe.Rejected{Partition: p.ID, Address: t.address, Body: body})
		}
	}
}
