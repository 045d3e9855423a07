package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"compactd/internal/broker/request"
	"compactd/internal/events"
)

// Budget is the fill level of a session's window, in tokens.
type Budget struct {
	// Level is ok, info, warning, error, compacting or blocking.
	Level string
	// ContextWindow less OutputReserve is AvailableInput; EstimatedInput is the whole
	// next call, system prompt and tools included.
	ContextWindow, OutputReserve, AvailableInput, EstimatedInput int64
	// Fits: the estimate is within the available input. Compacts: the trigger of a
	// compaction is reached.
	Fits, Compacts bool
}

func budget(b events.Budget) Budget {
	return Budget{
		Level: string(b.Level), ContextWindow: b.ContextWindow, OutputReserve: b.OutputReserve, AvailableInput: b.AvailableInput,
		EstimatedInput: b.EstimatedInput, Fits: b.WithinBudget, Compacts: b.ShouldCompact,
	}
}

// request sends a request to the workers. A refusal is an [*Error].
func (c *Client) request(ctx context.Context, subject string, in, out any) error {
	return refusedBy(subject, request.Send(ctx, c.nc, events.OfTenant(subject, c.tenant), in, out))
}

// refusedBy makes an [*Error] of a refusal, or of a missing worker.
func refusedBy(subject string, err error) error {
	_, refused := errors.AsType[*events.ServiceError](err)
	switch {
	case errors.Is(err, request.ErrNoWorker):
		err = newError(CodeUnavailable, "no worker is running", "Start one with: worker --nats URL")
	case refused:
		err = typed(err)
	default:
		return err
	}
	return fmt.Errorf("request %s: %w", subject, err)
}

// Budget returns the budget of the last outcome: of the last change of level, or of the
// last compaction. It sends no request.
func (s *Session) Budget() Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.budget
}

// Check returns the budget of the next call with more messages, before the model is
// called: under the model of Config, with all turns that this session has published. A
// worker that has not applied the last of them within [events.DefaultWait] answers with
// CodeTurnPending.
func (s *Session) Check(ctx context.Context, more ...any) (Budget, error) {
	in := events.CheckRequest{About: s.at.About()}
	s.mu.Lock()
	in.Await = events.Await{Seq: s.acked}
	in.NextCall = s.nextCall()
	s.mu.Unlock()
	var err error
	if in.Messages, err = encodeAll(more); err != nil {
		return Budget{}, err
	}
	var out events.CheckResponse
	if err := s.c.request(ctx, events.SubjectCheck, in, &out); err != nil {
		return Budget{}, err
	}
	return budget(out.Budget), nil
}

// Recall returns the message at index of a turn as published, before any compaction. Notices and records in
// the history name turn and index. An index below 0 returns the whole turn. A turn beyond the session's own
// is looked up in the session that it branched off.
func (s *Session) Recall(ctx context.Context, turn, index int64) ([]json.RawMessage, error) {
	return s.recall(ctx, "", turn, index)
}

// RecallHit returns the message that [Session.Search] found.
func (s *Session) RecallHit(ctx context.Context, h Hit) ([]json.RawMessage, error) {
	return s.recall(ctx, h.Ancestor, h.Turn, h.Index)
}

func (s *Session) recall(ctx context.Context, ancestor string, turn, index int64) ([]json.RawMessage, error) {
	in := events.RecallRequest{About: s.at.About(), Turn: turn, Page: 1, Ancestor: ancestor}
	if index >= 0 {
		in.Index = &index
	}
	var all []json.RawMessage
	var seq uint64
	for pages := int64(1); in.Page <= pages; in.Page++ {
		var out events.RecallResponse
		if err := s.c.request(ctx, events.SubjectRecall, in, &out); err != nil {
			return nil, err
		}
		if in.Page > 1 && out.Seq != seq { // another turn has this number now
			all, pages, in.Page = nil, 1, 0
			continue
		}
		all, pages, seq = append(all, public(out.Messages)...), out.Pages, out.Seq
	}
	return all, nil
}

// Hit is a message that contains a text.
type Hit struct {
	Ancestor      string // the session that has it, from which this one branched off; "" for this one
	Turn, Index   int64
	Role, Excerpt string
}

// Search finds up to limit published messages that contain a text, the newest first; 0
// is 10.
func (s *Session) Search(ctx context.Context, text string, limit int) ([]Hit, error) {
	if limit <= 0 {
		limit = events.DefaultHits
	}
	in := events.RecallRequest{About: s.at.About(), Text: text}
	var hits []Hit
	for {
		in.Limit = int64(min(limit-len(hits), events.MaxHits))
		var out events.SearchResponse
		if err := s.c.request(ctx, events.SubjectRecall, in, &out); err != nil {
			return nil, err
		}
		for _, h := range out.Hits {
			hits = append(hits, Hit{h.Ancestor, h.Turn, h.Index, string(h.Role), h.Excerpt})
		}
		if in.Before, in.Ancestor = out.Before, out.Ancestor; in.Before == nil || len(hits) >= limit {
			return hits, nil
		}
	}
}

// history joins the pages of a session's history, which must contain an event.
func (c *Client) history(ctx context.Context, a events.Address, after events.Await) (*events.ContextResponse, error) {
	h, err := request.History(ctx, c.nc, events.ContextRequest{About: a.About(), Await: after})
	return h, refusedBy(events.SubjectContext, err)
}
