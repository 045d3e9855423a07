package query

import (
	"cmp"
	"context"

	"compactd/internal/compaction"
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
		if st, bad = l.Stats(s.config.Compaction, in.RequestedModel()); bad != nil {
			return
		}
		*out = events.StatsResponse{
			V: events.Version, Known: true, Turns: st.Turns, Messages: int64(st.Messages), Generation: st.Generation,
			Through: st.Through, Parked: int64(st.Parked), Prepared: st.Prepared, Waiting: st.Waiting,
			NeedsCompaction: st.Budget.ShouldCompact, Rereads: st.Repeated.Rereads, Reruns: st.Repeated.Reruns, Cost: st.Cost, Budget: st.Budget,
		}
		if st.Unknown != "" {
			out.Warnings = []events.SyncWarning{events.WarningOf(events.CodeUnknownModel, st.Unknown)}
		}
	})
	return out, cmp.Or(err, bad)
}

// decodeHealth reads a request for the state of a worker: it has no payload.
func (s *Service) decodeHealth([]byte) (*call, error) {
	return &call{partition: anyWorker, answer: func(context.Context) (any, error) { return s.health(), nil }}, nil
}

// health answers with the state of this worker.
func (s *Service) health() *events.HealthResponse {
	out := &events.HealthResponse{
		V: events.Version, Status: events.HealthOK,
		Version: s.config.Version, Owner: s.config.Owner, Config: s.config.Compaction.Hash(),
	}
	for id := range s.config.Partitions.Count() {
		if !s.config.Partitions.IsAssigned(id) {
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
