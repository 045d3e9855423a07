package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/retry"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/payload"
)

// Context answers with a session's history for code of this process, by way of the worker that
// serves the session.
func (s *Service) Context(ctx context.Context, in *events.ContextRequest) (*events.ContextResponse, error) {
	return ask(ctx, s, "context", in, (*Service).context, func() ([]byte, error) { return events.Marshal(in) })
}

// context answers with a session's history.
func (s *Service) context(ctx context.Context, in *events.ContextRequest) (*events.ContextResponse, error) {
	var view *compaction.View
	var system, tools compaction.Seq
	var st compaction.Stats
	var bad error
	var weight int
	p, at, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		if !l.HasTurns() {
			return
		}
		weight = l.Weight()
		st, bad = l.Stats(s.config.Compaction, events.Model{})
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
	whole.BoundThinking = view.Thinking.Bound
	if err := rendering(ctx, max(weight, int(st.Budget.EstimatedInput)*bytesOfToken)); err != nil {
		return nil, orEnded(ctx, err)
	}
	if _, err := Reading(ctx, func() (any, error) { return nil, s.render(ctx, in.Address(), view, system, tools, whole) }); err != nil {
		return nil, err
	}
	return whole.Paged(in.Page, min(maxAnswerBytes, connect.MaxPayload(s.config.Read)-answerMargin))
}

// render reads the texts of a view, and of its instructions and tools, into an answer.
func (s *Service) render(ctx context.Context, a events.Address, view *compaction.View, system, tools compaction.Seq, whole *events.ContextResponse) (err error) {
	if whole.Messages, err = s.config.Partitions.Payloads.Render(ctx, a, view); err != nil {
		if bad, ok := errors.AsType[*payload.InvalidError](err); ok {
			return events.NewInvalid(events.CodeInvalidHistory, "", bad.Error())
		}
		return orEnded(ctx, err)
	}
	whole.System, whole.Tools, err = s.config.Partitions.Payloads.Prompt(ctx, a, system, tools)
	return orEnded(ctx, err)
}

// bytesOfToken is about how many bytes of a history a token has, and renderedCopies how often it is
// in memory while it is rendered: as text of the log, as a message, and in the answer.
const (
	bytesOfToken   = 4
	renderedCopies = 3
)

// rendering takes what an answer with so many bytes of a history needs, if that is much.
func rendering(ctx context.Context, bytes int) error {
	if bytes <= limit.Large {
		return nil
	}
	return limit.Of(ctx).Work(ctx, int64(bytes)*renderedCopies)
}

// inspect shows the ledger of a session to read, and returns its partition and up to
// which event it holds. read must not keep the ledger.
func (s *Service) inspect(a events.Address, read func(*compaction.Ledger)) (*partition.Partition, compaction.Seq, error) {
	p := s.config.Partitions.At(events.PartitionOf(a, s.config.Partitions.Count()))
	if p == nil {
		return nil, 0, ErrNotServed
	}
	seq, err := p.Inspect(a, read)
	if errors.Is(err, partition.ErrNotServing) {
		err = ErrNotServed
	}
	if err != nil {
		return nil, 0, err
	}
	return p, seq, nil
}

// awaitCommitted waits until the outcomes that a view rests on are committed: what is
// only decided may be decided otherwise after a crash, under another config.
func (s *Service) awaitCommitted(ctx context.Context, p *partition.Partition, a events.Address, seq compaction.Seq) error {
	if p.HasCommitted(a, seq) {
		return nil
	}
	err := limit.Of(ctx).Idle(ctx, func() error { // the commit may need its processor
		return retry.Every(commitPause).Until(ctx, func() (bool, error) {
			if p.HasCommitted(a, seq) {
				return true, nil
			}
			if s.config.Partitions.At(p.ID) != p {
				return false, ErrNotServed
			}
			return false, nil
		})
	})
	return orEnded(ctx, err)
}
