package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/insight"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/payload"
)

// historyMemory is the memory to read compactions: room for a large one as stored and as decoded.
const historyMemory = 4 * events.MaxOutputBytes

// compactions lists the compactions of a session with their reasons. It reads OUTCOMES for tenants, who may
// not.
func (s *Service) compactions(ctx context.Context, in *events.HistoryRequest) (*events.HistoryResponse, error) {
	a := in.Address()
	out := &events.HistoryResponse{V: events.Version, Entries: []events.HistoryEntry{}}
	if _, _, err := s.inspect(a, func(l *compaction.Ledger) {
		if out.Known = l.HasTurns(); out.Known {
			out.Generation, out.Through = l.Generation(), l.Through()
		}
	}); err != nil {
		return nil, err
	}
	most := int(cmp.Or(in.Limit, events.MaxHistory))
	err := s.Compactions(ctx, a, func(c *events.Compacted, stored time.Time, t events.Trace) error {
		e := c.Entry(stored.UnixMilli())
		e.Trace = t.ID()
		if out.Entries = append([]events.HistoryEntry{e}, out.Entries...); len(out.Entries) > most {
			out.Entries = out.Entries[:most]
			out.Older++
		}
		return nil
	})
	return out, err
}

// Compactions calls fn for each session.compacted of a session that is stored, oldest first.
func (s *Service) Compactions(ctx context.Context, a events.Address, fn func(c *events.Compacted, stored time.Time, t events.Trace) error) error {
	op := limit.Of(ctx)
	release, err := op.Borrow(ctx, historyMemory)
	if err != nil {
		return orEnded(ctx, err)
	}
	defer release()
	subjects := events.OutcomesIn(s.config.Partitions.Table().Path(a), events.KindCompacted, a)
	_, err = Reading(ctx, func() (any, error) {
		return nil, stream.ReadSubjects(ctx, s.config.Answers, topology.OutcomesStream, subjects, 1, func(m stream.LogMessage) error {
			if err := op.ComputeOver(ctx, len(m.Data)); err != nil {
				return err
			}
			defer op.Rest() // the next one is waited for
			body, err := events.DecodeOutcome(events.KindCompacted, m.Data)
			if c, ok := body.(*events.Compacted); ok && err == nil { // neither erased nor of an unknown version
				return fn(c, m.Time, m.Trace)
			}
			return nil
		})
	})
	return orEnded(ctx, err)
}

// timeline lists the growth of a session, turn by turn.
func (s *Service) timeline(ctx context.Context, in *events.ContextRequest) (*events.TimelineResponse, error) {
	out := &events.TimelineResponse{V: events.Version, Turns: []events.TimelineTurn{}, Generations: []events.TimelineShift{}}
	if err := s.computeOver(ctx, in.Address()); err != nil {
		return nil, err
	}
	_, _, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		if out.Known = l.HasTurns(); !out.Known {
			return
		}
		o := l.Describe(s.config.Partitions.Compaction())
		out.Generation, out.Through, out.Format = l.Generation(), l.Through(), l.Format()
		out.Provider, out.Model = o.Model.Provider, o.Model.Name
		out.ContextWindow, out.AvailableInput = o.Budget.ContextWindow, o.Budget.AvailableInput
		out.TriggerTokens, out.TargetTokens, out.LimitTokens = o.Budget.TriggerTokens, o.Budget.TargetTokens, o.Budget.LimitTokens
		out.Input = o.Budget.EstimatedInput
		points, shifts := l.Timeline(s.config.Partitions.Compaction())
		for i, p := range points {
			out.Turns = append(out.Turns, events.TimelineTurn{Turn: int64(i + 1), Seq: uint64(p.Seq), Added: int64(p.Added), Input: int64(p.Input), Published: int64(p.Published)})
		}
		for i, g := range shifts {
			out.Generations = append(out.Generations, events.TimelineShift{Generation: int64(i + 1), Turn: g.Turn, From: g.From, Before: int64(g.Before), After: int64(g.Before - g.Saved), Saved: int64(g.Saved), Reason: g.Reason})
		}
	})
	return out, err
}

// computeOver takes a processor for work on a whole session, until the operation rests.
func (s *Service) computeOver(ctx context.Context, a events.Address) error {
	weight := 0
	if _, _, err := s.inspect(a, func(l *compaction.Ledger) { weight = l.Weight() }); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	return orEnded(limited, limit.Of(ctx).ComputeOver(limited, weight))
}

// looked has the views of a session that an insight needs, and the rate that estimates their
// tokens.
type looked struct {
	unread
	earlier *render.View // of the generation before, up to the turn of the compaction
	through int64        // that turn
	budget  events.Budget
	rate    measure.Rate
	input   int64 // of the call with the view
}

// look copies the view of a generation, and with pair the view before it, both up to the last turn
// that the compaction changed. It first waits for the memory to render them.
func (s *Service) look(ctx context.Context, in *events.ContextRequest, pair bool) (out looked, err error) {
	weight, out := 0, looked{unread: unread{ContextResponse: events.ContextResponse{V: events.Version}}}
	if _, _, err := s.inspect(in.Address(), func(l *compaction.Ledger) { weight = l.Weight() }); err != nil {
		return out, err
	}
	p, at, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		if out.Known = l.HasTurns(); !out.Known {
			return
		}
		o := l.Describe(s.config.Partitions.Compaction())
		out.budget, out.Through, out.Format, out.Generation = o.Budget, l.Through(), l.Format(), l.Generation()
		out.rate = measure.RateOf(measure.Profiles["default"], o.Model.Provider, o.Model.Name)
		out.system, out.tools = l.Prompt()
		g := *cmp.Or(in.Generation, &out.Generation)
		switch {
		case g > out.Generation || pair && g < 1:
		case pair:
			_, shifts := l.Timeline(s.config.Partitions.Compaction())
			out.through = cmp.Or(l.GenerationThrough(g), shifts[g-1].Turn)
			out.earlier, out.view, out.Generation = l.ViewThrough(g-1, out.through), l.ViewThrough(g, out.through), g
		case g < out.Generation: // its state before the next generation
			_, shifts := l.Timeline(s.config.Partitions.Compaction())
			out.view, out.Generation, out.input = l.ViewThrough(g, cmp.Or(l.GenerationThrough(g+1), shifts[g].Turn)), g, int64(shifts[g].Before)
		default:
			out.view, out.Generation, out.input = l.ViewAt(g), g, o.Budget.EstimatedInput
		}
	})
	switch {
	case err != nil || !out.Known:
		return out, err
	case out.view == nil:
		least := int64(0)
		if pair { // generation 0 has no compaction
			least = 1
		}
		return out, unknownGeneration(least, out.Generation)
	}
	if err := limit.Of(ctx).Remember(ctx, int64(max(weight, out.view.TextBytes()))*2*renderedCopies); err != nil {
		return out, orEnded(ctx, err)
	}
	return out, s.awaitCommitted(ctx, p, in.Address(), at)
}

// unknownGeneration refuses a generation that the session does not have, or no longer has.
func unknownGeneration(least, most int64) error {
	if most < least {
		return events.Refuse(events.CodeUnknownGeneration, "the session was not compacted yet", "Request it once a compaction has made a generation.")
	}
	return events.Refuse(events.CodeUnknownGeneration, "the session has no such generation", fmt.Sprintf("Name one from %d to %d.", least, most))
}

// count estimates a message.
func (l *looked) count(m dialect.Message) int64 { return int64(l.rate.Message(m)) }

// sourced renders a view, also one that its provider would refuse.
func (s *Service) sourced(ctx context.Context, a events.Address, v *render.View) (out []render.Sourced, invalid *payload.InvalidError, err error) {
	out, err = Reading(ctx, func() ([]render.Sourced, error) {
		if err := limit.Of(ctx).ComputeOver(ctx, v.TextBytes()); err != nil {
			return nil, err
		}
		all, err := s.config.Partitions.Payloads.Sourced(ctx, a, v, func(measure.Seq) []dialect.Message { return nil })
		if errors.As(err, &invalid) {
			err = nil
		}
		return all, err
	})
	return out, invalid, orEnded(ctx, err)
}

// changesPage is the approximate size of a page of changes, in bytes.
const changesPage = 512 << 10

// changes lists the change of each message by a compaction.
func (s *Service) changes(ctx context.Context, in *events.ContextRequest) (*events.ChangesResponse, error) {
	out := &events.ChangesResponse{V: events.Version, Rows: []events.Change{}, Page: 1, Pages: 1}
	var published events.Compacted // before memory is held for texts
	if err := s.Compactions(ctx, in.Address(), func(c *events.Compacted, _ time.Time, _ events.Trace) error {
		if c.Compacted && (in.Generation == nil || *in.Generation == c.Generation) {
			published = events.Compacted{Generation: c.Generation, Edits: c.Edits, Summary: c.Summary}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	x, err := s.look(ctx, in, true)
	if err != nil || !x.Known {
		return out, err
	}
	out.Known, out.Generation, out.Through, out.Format = true, x.Generation, x.through, x.view.Format
	if published.Generation == out.Generation {
		out.Summary = published.Summary
	}
	before, _, err := s.sourced(ctx, in.Address(), x.earlier)
	if err != nil {
		return nil, err
	}
	after, _, err := s.sourced(ctx, in.Address(), x.view)
	if err != nil {
		return nil, err
	}
	rows := insight.Changes(x.view.Format, before, after, published.Edits, x.count)
	for i := range rows {
		out.Before += rows[i].TokensBefore
		out.After += rows[i].TokensAfter
	}
	starts := append(insight.Pages(rows, changesPage), len(rows))
	out.Page, out.Pages = max(in.Page, 1), int64(len(starts)-1)
	if out.Page > out.Pages {
		return nil, events.NewInvalid(events.CodeOutOfRange, "page", fmt.Sprintf("must be between 1 and %d", out.Pages))
	}
	out.Rows = rows[starts[out.Page-1]:starts[out.Page]]
	return out, nil
}

// xray lists the contents of the window.
func (s *Service) xray(ctx context.Context, in *events.ContextRequest) (*events.XrayResponse, error) {
	out := &events.XrayResponse{V: events.Version, Kinds: []events.XrayKind{}, Largest: []events.XrayEntry{}}
	l, err := s.look(ctx, in, false)
	if err != nil || !l.Known {
		return out, err
	}
	all, invalid, err := s.sourced(ctx, in.Address(), l.view)
	if err != nil {
		return nil, err
	}
	out.Known, out.Generation, out.AvailableInput, out.Valid = true, l.Generation, l.budget.AvailableInput, invalid == nil
	if invalid != nil {
		for _, v := range invalid.Violations {
			out.Violations = append(out.Violations, events.Violation{Rule: v.Rule, Message: v.Text, Index: int64(v.Index)})
		}
	}
	x := insight.NewXray(l.rate)
	tools, err := Reading(ctx, func() (tools codec.Raw, err error) {
		_, tools, err = s.config.Partitions.Payloads.Prompt(ctx, in.Address(), 0, l.tools)
		return tools, orEnded(ctx, err)
	})
	if err != nil {
		return nil, err
	}
	x.System(l.budget.Breakdown.SystemPrompt)
	x.Tools(tools, l.budget.Breakdown.ToolDefinitions)
	for i := range all {
		if m, err := l.view.Format.Read(all[i].Raw); err == nil {
			x.Add(&m, all[i].First)
		}
	}
	out.Input = cmp.Or(l.input, x.Total())
	x.Write(out)
	return out, nil
}

// preview returns the result that a session.compact would have.
func (s *Service) preview(ctx context.Context, in *events.PreviewRequest) (*events.PreviewResponse, error) {
	out := &events.PreviewResponse{V: events.Version}
	request := compaction.NewCompact(&events.Compact{Focus: in.Focus, Policy: in.Policy}, 0)
	if err := s.computeOver(ctx, in.Address()); err != nil {
		return nil, err
	}
	now := time.Now().UnixMilli()
	var outs []compaction.Outcome
	_, _, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		if out.Known = l.HasTurns(); out.Known {
			request.Seq, request.Time = l.LastTurnSeq()+1, now
			outs, _ = compaction.Decide(l, request, s.config.Partitions.Compaction())
		}
	})
	if out.Accepted = out.Known; err != nil {
		return nil, err
	}
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Rejected:
			out.Accepted, out.Code, out.Message, out.Hint = false, b.Code, b.Message, b.Hint
		case *events.Compacted:
			e := b.Entry(now)
			out.Compaction, out.Edits, out.Code = &e, int64(len(b.Edits)), b.Code
		case *events.Job:
			out.Summary = &events.SummaryRange{Lane: b.Lane, From: b.From, To: b.To, Provider: b.Provider, Model: b.Model}
		}
	}
	return out, nil
}

// WhatIf decides the turns of a session again, under other policies.
type WhatIf func(context.Context, *Service, *events.WhatIfRequest) (*events.WhatIfResponse, error)

var errNoWhatIf = events.Refuse(events.CodeNotFound, "this worker compares no policies", "Ask the program worker.")

// whatIf compares policies on a session.
func (s *Service) whatIf(ctx context.Context, in *events.WhatIfRequest) (*events.WhatIfResponse, error) {
	if s.config.WhatIf == nil {
		return nil, errNoWhatIf
	}
	return s.config.WhatIf(ctx, s, in)
}

// markerPause is the pause between two reads of a marker.
const markerPause = 20 * time.Millisecond

// AwaitMarker waits until the marker of the partition is past everything decided for a session, so
// that a reader of the log finds it: at most a second if the server answers.
func (s *Service) AwaitMarker(ctx context.Context, a events.Address) error {
	p, at, err := s.inspect(a, func(*compaction.Ledger) {})
	if err != nil {
		return err
	}
	err = limit.Of(ctx).Idle(ctx, func() error {
		return retry.Every(markerPause).Until(ctx, func() (bool, error) {
			m, err := commit.LastMarker(ctx, s.config.Answers, p.ID)
			return m.Cursor >= uint64(at), err
		})
	})
	return orEnded(ctx, err)
}
