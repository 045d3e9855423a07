package partition

import (
	"context"
	"errors"
	"slices"
	"time"

	"compactd/internal/broker/erase"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
)

// erasure is a session that has to go from the partition's streams and files.
type erasure struct {
	erase.Erasure
	resumed bool // an earlier try was cut off
	local   bool // another owner has done the rest: this worker's file is left
}

func (e *erasure) forget() compaction.Seq { return compaction.Seq(e.Seq) }

// pendingErasures lists what a new owner has to erase: what was decided and not
// published as done. Where nothing is, the file may still be from before, or from a worker
// that crashed before it had overwritten its pages.
func (p *Partition) pendingErasures(ctx context.Context) error {
	pending, err := erase.Pending(ctx, p.set.js, p.ID)
	if err != nil {
		return err
	}
	for _, e := range pending {
		p.erasures = append(p.erasures, erasure{Erasure: e, resumed: true})
	}
	last, err := erase.LastForget(ctx, p.set.config.Read, p.ID, everySession)
	if err != nil {
		return err
	}
	if p.store != nil && len(pending) == 0 && last > 0 && compaction.Seq(last) <= p.decided.seq {
		p.erasures = append(p.erasures, erasure{Erasure: erase.Erasure{Forgotten: events.Forgotten{Seq: last}}, local: true})
	}
	return nil
}

// eraseForgotten notes the erasures that a commit has published as decided.
func (p *Partition) eraseForgotten(b batch) {
	for _, t := range b.emitted {
		if f, ok := t.outcome.Body.(*events.Forgotten); ok {
			p.erase(erasure{Erasure: erase.Erasure{Partition: p.ID, Forgotten: *f, Address: t.address}})
		}
	}
}

func (p *Partition) erase(e erasure) {
	p.mu.Lock()
	p.erasures = append(p.erasures, e)
	p.mu.Unlock()
	wakeUp(p.forgotten)
}

// wakeUp signals a channel of one slot.
func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watchErasures does what is noted, one at a time, beside everything else the
// partition does, until ctx ends; what is left then the next owner does. Now and then
// it drops what has expired.
func (p *Partition) watchErasures(ctx context.Context) {
	tick := time.NewTicker(p.set.renewEvery())
	defer tick.Stop()
	for {
		p.mu.Lock()
		due := slices.Clone(p.erasures)
		p.mu.Unlock()
		for _, e := range due {
			if !p.eraseUntilDone(ctx, e) {
				return
			}
			p.mu.Lock()
			p.erasures = p.erasures[1:]
			p.mu.Unlock()
		}
		if len(due) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-p.forgotten:
		case <-tick.C:
			if err := p.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
				p.retrying("drop expired sessions")(err)
			}
		}
	}
}

// eraseUntilDone tries until it succeeds; false means that ctx ended.
func (p *Partition) eraseUntilDone(ctx context.Context, e erasure) bool {
	for {
		err := p.eraseNow(ctx, e)
		if err == nil || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		p.retrying("erase session")(err)
		e.resumed = true
		select {
		case <-ctx.Done():
			return false
		case <-time.After(fullPause):
		}
	}
}

// eraseNow overwrites a session wherever the partition's owner reaches, and publishes
// that. The streams come first: what is left of a file can be made of them again.
func (p *Partition) eraseNow(ctx context.Context, e erasure) (err error) {
	done := events.Erased{
		Header:   events.Header{V: events.Version, ID: "erased-" + e.ID},
		CausedBy: e.CausedBy, Seq: e.Seq, Resumed: e.resumed,
	}
	if !e.local {
		failpoint.Pass("forgotten")
		if done.Outcomes, done.Events, err = erase.Erase(ctx, p.set.js, e.Erasure); err != nil {
			return err
		}
		failpoint.Pass("streams-erased")
		p.set.Payloads.Invalidate()
	}
	if done.Files, err = p.eraseFile(ctx, &e); err != nil || e.local {
		return err
	}
	p.confirm(emitted{address: e.Address, outcome: compaction.Outcome{Kind: events.KindErased, Body: &done}})
	return nil
}

// eraseFile overwrites what the partition's file holds of ledgers that are gone,
// once a checkpoint confirms that they are, and removes files that were quarantined. Then
// the snapshots go, unless another owner has seen to them; no copy of the file is
// made meanwhile.
func (p *Partition) eraseFile(ctx context.Context, e *erasure) (removed int64, err error) {
	if p.store != nil {
		for compaction.Seq(p.store.Position().Cursor) < e.forget() {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-p.checkpointed:
			}
		}
	}
	select {
	case p.set.snapshots.slot <- struct{}{}:
		defer func() { <-p.set.snapshots.slot }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if p.store != nil {
		if removed, err = p.scrub(); err != nil {
			return removed, err
		}
		p.set.erasedElsewhere[p.ID].Store(false) // what was received before it was served here is done
	}
	failpoint.Pass("file-erased")
	if !e.local {
		err = p.set.snapshots.store.Erase(ctx)
	}
	return removed, err
}

// scrub rids the file of what no row holds, and of quarantined files.
func (p *Partition) scrub() (removed int64, err error) {
	n, err := kv.RemoveQuarantined(p.path())
	return int64(n), errors.Join(err, p.store.Scrub())
}

// confirm queues what follows from no event.
func (p *Partition) confirm(t emitted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return // the next owner erases again, finds nothing, and publishes it
	}
	g := group{[]emitted{t}, p.end}
	p.queue = append(p.queue, g)
	p.queued += g.weight()
	wakeUp(p.wake)
}
