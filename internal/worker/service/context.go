package service

import (
	"cmp"
	"context"
	"errors"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/retry"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/payload"
)

// context answers with a session's history. The memory for it is there before the view is copied.
func (s *Service) context(ctx context.Context, in *events.ContextRequest) (*events.ContextResponse, error) {
	weight, tokens := 0, int64(0)
	if _, _, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		weight, tokens = l.Weight(), l.Describe(s.config.Partitions.Compaction()).Budget.EstimatedInput
	}); err != nil {
		return nil, err
	}
	bytes := max(weight, int(tokens)*bytesOfToken)
	if bytes > limit.Large {
		if err := limit.Of(ctx).Remember(ctx, int64(bytes)*renderedCopies); err != nil {
			return nil, orEnded(ctx, err)
		}
	}
	if err := limit.Of(ctx).ComputeOver(ctx, bytes); err != nil {
		return nil, orEnded(ctx, err)
	}
	v, err := s.view(ctx, in)
	if err != nil || !v.Known {
		return &v.ContextResponse, err
	}
	if _, err := Reading(ctx, func() (any, error) {
		if err := limit.Of(ctx).ComputeOver(ctx, bytes); err != nil {
			return nil, orEnded(ctx, err)
		}
		return nil, s.render(ctx, in.Address(), &v)
	}); err != nil {
		return nil, err
	}
	return v.Paged(in.Page, min(maxAnswerBytes, connect.MaxPayload(s.config.Read)-answerMargin))
}

// unread is an answer before its texts are read.
type unread struct {
	events.ContextResponse
	view          *render.View
	system, tools measure.Seq // of the turns that hold them
}

// view returns an answer once the outcomes that it rests on are committed.
func (s *Service) view(ctx context.Context, in *events.ContextRequest) (unread, error) {
	out := unread{ContextResponse: events.ContextResponse{V: events.Version, Page: 1, Pages: 1}}
	p, at, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		if out.Known = l.HasTurns(); !out.Known {
			return
		}
		l.Describe(s.config.Partitions.Compaction())
		out.Generation, out.Through = l.Generation(), l.Through()
		out.system, out.tools = l.Prompt()
		if g := cmp.Or(in.Generation, &out.Generation); *g <= out.Generation {
			out.view, out.Generation = l.ViewAt(*g), *g
		}
	})
	switch {
	case err != nil || !out.Known:
		return out, err
	case out.view == nil:
		return out, unknownGeneration(0, out.Generation)
	}
	out.Format, out.BoundThinking = out.view.Format, out.view.Thinking.Bound
	return out, s.awaitCommitted(ctx, p, in.Address(), at)
}

// render reads the texts of a view, and of its instructions and tools, into an answer.
func (s *Service) render(ctx context.Context, a events.Address, out *unread) (err error) {
	if out.Messages, err = s.config.Partitions.Payloads.Render(ctx, a, out.view); err != nil {
		if bad, ok := errors.AsType[*payload.InvalidError](err); ok {
			return events.NewInvalid(events.CodeInvalidHistory, "", bad.Error())
		}
		return orEnded(ctx, err)
	}
	out.System, out.Tools, err = s.config.Partitions.Payloads.Prompt(ctx, a, out.system, out.tools)
	return orEnded(ctx, err)
}

// bytesOfToken approximates the bytes of a history per token. renderedCopies is the number of copies in
// memory during rendering: the text of the log, the message, and the answer.
const (
	bytesOfToken   = 4
	renderedCopies = 3
)

// inspect calls read with the ledger of a session, and returns the partition and the last event
// that the ledger has. read must not keep the ledger.
func (s *Service) inspect(a events.Address, read func(*compaction.Ledger)) (*partition.Partition, measure.Seq, error) {
	p := s.config.Partitions.At(s.config.Partitions.Of(a))
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

// Inspect calls read with the ledger of a session, once the event after is decided: see [syncs.Sessions].
func (s *Service) Inspect(ctx context.Context, a events.Address, after events.Await, read func(*compaction.Ledger)) (committed func(context.Context) error, err error) {
	if after.Waits() {
		if err := s.awaitDecided(ctx, a, after); err != nil {
			return nil, err
		}
	}
	p, at, err := s.inspect(a, read)
	return func(ctx context.Context) error { return s.awaitCommitted(ctx, p, a, at) }, err
}

// awaitCommitted waits until the outcomes that a view rests on are committed: an uncommitted
// decision may change after a crash, under another config.
func (s *Service) awaitCommitted(ctx context.Context, p *partition.Partition, a events.Address, seq measure.Seq) error {
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
