package worker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"compactd/internal/broker"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// context answers with a session's history.
func (s *service) context(ctx context.Context, data []byte) (any, error) {
	in, err := events.DecodeContextRequest(data)
	if err != nil {
		return nil, err
	}
	return s.history(ctx, in)
}

// history renders what is asked for.
func (s *service) history(ctx context.Context, in *events.ContextRequest) (*events.ContextResponse, error) {
	var view *compaction.View
	var system, tools compaction.Seq
	var st compaction.Stats
	var bad error
	p, at, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		if !l.HasTurns() {
			return
		}
		st, bad = l.Stats(s.w.config.Compaction, events.Model{})
		view, system, tools = l.View()
		if in.Generation != nil && *in.Generation <= st.Generation {
			view, st.Generation = l.ViewAt(*in.Generation), *in.Generation
		}
	})
	if err := cmp.Or(err, bad); err != nil {
		return nil, err
	}
	if view != nil && in.Generation != nil && *in.Generation != st.Generation {
		return nil, events.NewInvalid(events.CodeUnknownGeneration, "generation", fmt.Sprintf("must be between 0 and %d", st.Generation))
	}
	whole := &events.ContextResponse{V: events.Version, Known: view != nil, Page: 1, Pages: 1}
	if !whole.Known {
		return whole, nil
	}
	if err := s.awaitCommitted(ctx, p, in.Address(), at); err != nil {
		return nil, err
	}
	whole.Format, whole.Generation, whole.Through = view.Format, st.Generation, st.Through
	if whole.Messages, err = s.w.payloads.Render(ctx, in.Address(), view); err != nil {
		return nil, orEnded(ctx, err)
	}
	if whole.System, whole.Tools, err = s.w.payloads.Prompt(ctx, in.Address(), system, tools); err != nil {
		return nil, orEnded(ctx, err)
	}
	return whole.Paged(in.Page, min(maxAnswerBytes, broker.MaxPayload(s.w.config.Read)-answerMargin))
}

// inspect shows the ledger of a session to read, under the lock of its partition,
// and returns up to which event it holds. read must not keep the ledger.
func (s *service) inspect(a events.Address, read func(*compaction.Ledger)) (*partition, compaction.Seq, error) {
	p := s.w.served[events.PartitionOf(a, len(s.w.served))].Load()
	if p == nil {
		return nil, 0, errNotServed
	}
	p.state.Lock()
	defer p.state.Unlock()
	if p.isStopped() { // what it loads ledgers from may be closed
		return nil, 0, errNotServed
	}
	l, err := p.decider.Ledger(a)
	if err != nil {
		return nil, 0, err
	}
	read(l)
	p.evict() // a question may have brought one back
	return p, p.decided.seq, nil
}

// awaitCommitted waits until the outcomes that a view rests on are committed: what is
// only decided may be decided otherwise after a crash, under another config.
func (s *service) awaitCommitted(ctx context.Context, p *partition, a events.Address, seq compaction.Seq) error {
	tick := time.NewTicker(commitPause)
	defer tick.Stop()
	for !p.hasCommitted(a, seq) {
		if s.w.served[p.id].Load() != p {
			return errNotServed
		}
		select {
		case <-ctx.Done():
			return whyEnded(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// isStopped reports whether the partition takes no more events.
func (p *partition) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// hasCommitted reports whether every outcome for a that an event up to seq led to is
// committed.
func (p *partition) hasCommitted(a events.Address, seq compaction.Seq) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end.seq < seq {
		return false // decided, and not queued yet
	}
	for _, g := range p.queue {
		if g.end.seq > seq {
			break
		}
		for _, o := range g.outcomes {
			if o.address == a {
				return false
			}
		}
	}
	return true
}
