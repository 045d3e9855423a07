package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/erase"
	"compactd/internal/broker/retry"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/payload"
)

// committer renders queued outcomes and commits them behind the fence, one commit at a time.
// Only the goroutine of [Partition.commitLoop] uses it.
type committer struct {
	scope
	queue     *queue
	eraser    *eraser
	allowance int         // bytes of one commit
	stopped   atomic.Bool // another worker waits for the partition: no further commit begins

	commits   *commit.Committer
	taken     uint64 // sequence in OUTCOMES of the takeover
	committed measure.Seq
	split     partitions.Split // of the last marker
	markedAt  time.Time
	exposed   bool           // another partition may erase the message with the last marker
	carried   *batch         // the next group, already rendered, which did not fit the last commit; or nil
	ahead     *payload.Ahead // texts for the groups at the head of the queue
}

// begin starts commits after a marker, with the fence of commits.
func (c *committer) begin(commits *commit.Committer, marker position) {
	c.commits, c.taken, c.committed, c.split, c.markedAt = commits, commits.LastSeq(), marker.seq, marker.split, time.Now()
}

// ReadHour counts the bytes of compactions stored in the last hour, before a limit needs the count.
func (p *Partition) ReadHour(ctx context.Context) error {
	err := p.set.Outcomes.Serve(ctx, p.ID, p.committer.taken)
	if p.set.At(p.ID) != p { // released during the count
		p.set.Outcomes.Release(p.ID)
	}
	return err
}

// lastSeq returns the sequence in OUTCOMES of the last committed message.
func (c *committer) lastSeq() uint64 { return c.commits.LastSeq() }

// commitQueue commits the whole queue. If the cursor moved without outcomes, it commits a marker
// alone once one is due, or at once if a checkpoint at wanted or an erasure waits for it.
func (c *committer) commitQueue(ctx context.Context, wanted measure.Seq) error {
	for !c.stopped.Load() {
		b, err := c.batch(ctx)
		if err != nil {
			return err
		}
		if b.groups == 0 && !c.wantsMarker(b.end, wanted) {
			return nil
		}
		if err := c.commit(ctx, b); err != nil {
			return err
		}
		if b.groups == 0 {
			return nil
		}
	}
	return nil
}

// wantsMarker reports whether a marker without outcomes is due.
func (c *committer) wantsMarker(end position, wanted measure.Seq) bool {
	if c.exposed {
		return true
	}
	age := time.Since(c.markedAt)
	if end.seq <= c.committed {
		return !c.markedAt.IsZero() && age >= c.set.renewEvery()
	}
	return wanted > c.committed || age >= c.set.config.MarkerEvery
}

// drain commits all decided events and a marker at their end.
func (c *committer) drain(ctx context.Context) error {
	failpoint.Pass("draining")
	c.markedAt = time.Time{}
	if err := c.commitQueue(ctx, 0); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// batch holds the rendered groups of one commit.
type batch struct {
	groups   int
	end      position
	messages []commit.Message
	emitted  []emitted
	bytes    int
}

// batch renders groups from the head of the queue, up to the limits of one commit. It ends
// between two events.
func (c *committer) batch(ctx context.Context) (batch, error) {
	queue, end := c.queue.head()
	b := batch{end: end}
	for i, g := range queue {
		if b.groups > 0 && c.stopped.Load() {
			break
		}
		r := c.carried
		if c.carried = nil; r == nil {
			c.readAhead(ctx, queue[i:])
			var err error
			if r, err = c.render(ctx, g); err != nil {
				return batch{}, err
			}
		}
		if b.groups > 0 && (len(b.messages)+len(r.messages) > commit.MaxBatch || b.bytes+r.bytes > c.allowance) {
			c.carried = r
			break
		}
		b.groups++
		b.messages = append(b.messages, r.messages...)
		b.emitted = append(b.emitted, r.emitted...)
		b.bytes += r.bytes
	}
	if b.groups < len(queue) {
		b.end = queue[b.groups-1].end
	} else {
		c.ahead = nil
	}
	return b, nil
}

// readAhead reads the texts of the first group, unless it has them, and those of as many later
// groups as fit one commit. One sweep over the log reads them all, in place of a sweep per group.
func (c *committer) readAhead(ctx context.Context, queue []group) {
	missing := func(w payload.Wanted) bool { return !c.ahead.Has(w.View) }
	if !slices.ContainsFunc(c.wanted(nil, queue[0]), missing) {
		return
	}
	var wanted []payload.Wanted
	for i, expected := 0, 0; i < len(queue) && expected <= c.allowance; i++ {
		from := len(wanted)
		wanted = c.wanted(wanted, queue[i])
		for _, w := range wanted[from:] {
			expected += w.View.TextBytes()
		}
	}
	c.ahead = c.set.Payloads.ReadAhead(ctx, c.ahead, wanted, c.allowance)
}

// wanted appends the views of a group that the committer will render: those within the limits of
// size and tenant.
func (c *committer) wanted(all []payload.Wanted, g group) []payload.Wanted {
	for _, t := range g.outcomes {
		if v := t.outcome.View; v != nil && !payload.TooLong(v) && c.set.Outcomes.Over(t.address.Tenant, 1) == "" {
			all = append(all, payload.Wanted{Address: t.address, View: v})
		}
	}
	return all
}

func (c *committer) render(ctx context.Context, g group) (*batch, error) {
	r := &batch{emitted: slices.Clone(g.outcomes)}
	for i := range r.emitted {
		t, began := &r.emitted[i], time.Now()
		body, err := c.renderOutcome(ctx, t)
		if body == nil {
			return nil, err
		}
		if err != nil {
			c.retrying("render")(err)
		}
		t.outcome.View = nil
		c.did(t.step(observe.StepRender, began))
		r.messages = append(r.messages, commit.Message{Subject: decide.SubjectOf(c.ID, t.address, t.outcome), Data: body, Trace: t.trace})
		r.bytes += len(body)
		c.set.Outcomes.Rendered(c.ID, int64(len(body)))
	}
	return r, nil
}

// renderOutcome writes the payload of an outcome, without messages if its tenant is over a limit.
func (c *committer) renderOutcome(ctx context.Context, t *emitted) (data []byte, err error) {
	body, ok := t.outcome.Body.(*events.Compacted)
	q, tenant := c.set.Outcomes, t.address.Tenant
	if !ok || t.outcome.View == nil {
		data, _, err = c.set.Payloads.Outcome(ctx, c.ahead, t.address, t.outcome, connect.MaxPayload(c.set.config.Commit))
		return data, err
	}
	if err := q.Serve(ctx, c.ID, c.lastSeq()); err != nil {
		c.retrying("count outcomes")(err)
	}
	if t.omitted = q.Over(tenant, 1); t.omitted == "" {
		end := func() {}
		if !payload.TooLong(t.outcome.View) { // a view that is too long is not rendered
			if ctx, end, err = c.rendering(ctx, body); err != nil {
				return nil, err
			}
		}
		data, t.omitted, err = c.set.Payloads.Outcome(ctx, c.ahead, t.address, t.outcome, connect.MaxPayload(c.set.config.Commit))
		if end(); data == nil {
			return nil, err
		}
		if bad, ok := errors.AsType[*payload.InvalidError](err); ok {
			t.invalid, err = bad, nil
		}
		if t.omitted == "" {
			t.omitted = q.Over(tenant, int64(len(data)))
		}
	}
	if !slices.Contains([]string{"", observe.OmittedSize, observe.OmittedText, observe.OmittedInvalid}, t.omitted) {
		if data, err = payload.WithoutMessages(body, events.NoteOf(events.CodeOutcomesLimit)); err != nil {
			return nil, err
		}
	}
	q.Charge(c.ID, tenant, int64(len(data)))
	return data, err
}

// commit stores a batch and removes it from the queue. It waits while the store is full.
func (c *committer) commit(ctx context.Context, b batch) error {
	failpoint.Pass("rendered")
	began := time.Now()
	if err := c.retry(ctx, "commit", func() error {
		err := c.commits.Commit(ctx, b.messages, c.marker(b.end))
		_, full := errors.AsType[*commit.StoreFullError](err)
		return retry.When(full, err)
	}); err != nil {
		return err
	}
	failpoint.Pass("committed")
	c.set.Outcomes.Stored(c.ID, int64(b.bytes))
	c.committed, c.markedAt, c.exposed = b.end.seq, time.Now(), c.exposes(b.emitted)
	c.queue.remove(b.groups)
	c.report(b, began)
	if c.split == b.end.split {
		return nil
	}
	c.split = b.end.split
	return c.set.learn(c.split)
}

// exposes reports whether a commit of outcomes ends with one of a session that another partition decides now: the
// session.erased of a session that moved, or an outcome of a truncated log from before the split. That partition's
// erasure of the session waits until a later marker is stored.
func (s scope) exposes(outcomes []emitted) bool {
	n := len(outcomes)
	return n > 0 && s.set.Of(outcomes[n-1].address) != s.ID
}

// report passes a commit to the listener and its erasures to the eraser.
func (c *committer) report(b batch, began time.Time) {
	l := &c.set.config.Listener
	observe.Call(l.Committed, observe.Committed{Partition: c.ID, Cursor: b.end.seq, Outcomes: len(b.messages), Bytes: b.bytes, Took: time.Since(began)})
	for i := range b.emitted {
		t := &b.emitted[i]
		c.did(t.step(observe.StepCommit, began))
		for _, n := range events.NotesOf(t.outcome.Body) {
			observe.Call(l.Noted, observe.Noted{Partition: c.ID, Address: t.address, Note: n})
		}
		switch body := t.outcome.Body.(type) {
		case *events.Compacted:
			observe.Call(l.Compacted, observe.Compacted{Partition: c.ID, Address: t.address, Body: body, Omitted: t.omitted, Invalid: t.invalid})
		case *events.Rejected:
			observe.Call(l.Rejected, observe.Rejected{Partition: c.ID, Address: t.address, Body: body})
		case *events.Forgotten:
			c.eraser.add(erasure{Erasure: erase.Erasure{Forgotten: *body, Address: t.address}, behind: body.Seq})
		}
	}
}
