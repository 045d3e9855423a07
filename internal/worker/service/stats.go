package service

import (
	"cmp"
	"context"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// stats answers with the state and the budget of a session.
func (s *Service) stats(_ context.Context, in *events.StatsRequest) (*events.StatsResponse, error) {
	out := &events.StatsResponse{V: events.Version}
	var bad error
	_, _, err := s.inspect(in.Address(), func(l *compaction.Ledger) {
		if !l.HasTurns() {
			return
		}
		var st compaction.Stats
		if st, bad = l.Stats(s.config.Partitions.Compaction(), in.RequestedModel()); bad != nil {
			return
		}
		*out = events.StatsResponse{
			V: events.Version, Known: true, Turns: st.Turns, Messages: int64(st.Messages), Generation: st.Generation,
			Through: st.Through, Parked: int64(st.Parked), Prepared: st.Prepared, Waiting: st.Waiting,
			NeedsCompaction: st.Budget.ShouldCompact, Rereads: st.Repeated.Rereads, Reruns: st.Repeated.Reruns, Cost: st.Cost, Budget: st.Budget, LongestAnswer: int64(st.Longest),
		}
		if st.Unknown != "" {
			out.Warnings = []events.SyncWarning{events.WarningOf(events.CodeUnknownModel, st.Unknown)}
		}
	})
	return out, cmp.Or(err, bad)
}

// check reports whether the next call of a session fits (A10). It renders nothing and reads no text,
// and measures the new messages outside the lock.
func (s *Service) check(_ context.Context, in *events.CheckRequest) (*events.CheckResponse, error) {
	next, err := s.pending(in.Address(), &in.NextCall)
	if err != nil {
		return nil, err
	}
	next = next.WithAttachments(in.Attachments)
	out := &events.CheckResponse{V: events.Version, Unknown: in.Unknown}
	var limits measure.FileLimits
	var bad error
	_, _, err = s.inspect(in.Address(), func(l *compaction.Ledger) {
		out.Budget, bad = l.Check(s.config.Partitions.Compaction(), next)
		limits = l.FileLimits(s.config.Partitions.Compaction())
		out.Known, out.Generation, out.Through = l.HasTurns(), l.Generation(), l.Through()
	})
	if err := cmp.Or(err, bad); err != nil {
		return nil, err
	}
	b := &out.Budget
	out.Fits, out.Level, out.NeedsCompaction = b.WithinBudget, b.Level, b.ShouldCompact
	out.Room = b.AvailableInput - b.EstimatedInput
	out.Added = b.Breakdown.CurrentPrompt + b.Breakdown.FileAttachments
	if in.Attachments != nil {
		out.Attachments = next.Attach(b, &limits)
	}
	return out, nil
}

// decodeHealth reads a request for the state of a worker: it has no payload.
func (s *Service) decodeHealth([]byte) (*call, error) {
	return &call{partition: anyWorker, answer: func(context.Context) (any, error) { return s.health(), nil }}, nil
}

// health answers with the state of this worker.
func (s *Service) health() *events.HealthResponse {
	out := &events.HealthResponse{
		V: events.Version, Status: events.HealthOK,
		Version: s.config.Version, Owner: s.config.Owner, Config: s.config.Partitions.Compaction().Hash(),
	}
	for id := range s.config.Partitions.Count() {
		if !s.config.Partitions.IsAssigned(id) || !s.config.Partitions.Table().Decides(id) {
			continue
		}
		if out.Partitions++; s.config.Partitions.At(id) != nil {
			out.Served++
		}
	}
	if out.Served < out.Partitions || !s.config.Commit.IsConnected() {
		out.Status = events.HealthStarting
		select {
		case <-s.config.Ready:
			out.Status = events.HealthDegraded
		default:
		}
	}
	return out
}
