package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/partition"
)

// sessions lists the sessions of a tenant, partition by partition, up to the first partition of another
// worker, which continues there.
func (s *Service) sessions(ctx context.Context, in *events.SessionsRequest) (*events.SessionsResponse, error) {
	if n := s.config.Partitions.Count(); in.After.Partition >= n {
		return nil, events.NewInvalid(events.CodeOutOfRange, "after", fmt.Sprintf("names partition %d of %d", in.After.Partition, n))
	}
	out := &events.SessionsResponse{V: events.Version, Tenant: in.Tenant, Sessions: []events.SessionSummary{}}
	limit := int(cmp.Or(in.Limit, events.DefaultSessions))
	for at := in.After; at.Partition < s.config.Partitions.Count(); at = (events.SessionsCursor{Partition: at.Partition + 1}) {
		before := len(out.Sessions)
		full, err := s.list(ctx, at, limit, out)
		if !errors.Is(err, ErrNotServed) || at.Partition == in.After.Partition {
			if full || err != nil {
				return out, err
			}
			continue
		}
		decides, err := s.config.Partitions.Decides(ctx, at.Partition)
		if err != nil {
			return nil, orEnded(ctx, err)
		}
		if out.Sessions = out.Sessions[:before]; decides { // otherwise its parent has listed its sessions
			out.After = &at
			return out, nil
		}
	}
	return out, nil
}

// decodeSessions reads a request for sessions, and finds the partition with which it goes on. Any
// worker refuses a partition that does not exist.
func (s *Service) decodeSessions(request []byte) (*call, error) {
	in, err := events.DecodeSessionsRequest(request)
	if err != nil {
		return nil, err
	}
	c := &call{
		tenant: in.Tenant, partition: in.After.Partition, raw: request,
		answer: func(ctx context.Context) (any, error) {
			return Reading(ctx, func() (*events.SessionsResponse, error) { return s.sessions(ctx, in) })
		},
	}
	if in.Ranks() {
		in.Sort = cmp.Or(in.Sort, events.SortFill)
		c.answer = func(ctx context.Context) (any, error) { return s.rankSessions(ctx, in) }
		c.partition = s.partitionOf(in.Partition)
	}
	if c.partition >= s.config.Partitions.Count() {
		c.partition = anyWorker
	}
	return c, nil
}

// list adds the sessions of one partition after a cursor to an answer, up to most in all. It reports
// whether more follow; After is then their beginning.
func (s *Service) list(ctx context.Context, at events.SessionsCursor, most int, out *events.SessionsResponse) (full bool, err error) {
	p := s.config.Partitions.At(at.Partition)
	if p == nil {
		return false, ErrNotServed
	}
	op := limit.Of(ctx)
	if err := op.ComputeOver(ctx, 0); err != nil {
		return false, orEnded(ctx, err)
	}
	names, err := p.Sessions(out.Tenant, at.Session, most-len(out.Sessions)+1)
	if errors.Is(err, partition.ErrNotServing) {
		err = ErrNotServed
	}
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if len(out.Sessions) == most {
			out.After = &at
			return true, nil
		}
		if err := op.Yield(ctx); err != nil {
			return false, orEnded(ctx, err)
		}
		if err := s.summarize(p, events.Address{Tenant: out.Tenant, Session: name}, out); err != nil {
			return false, err
		}
		at.Session = name
	}
	return false, nil
}

// summarize adds a session of a partition to an answer, if it is still there.
func (s *Service) summarize(p *partition.Partition, a events.Address, out *events.SessionsResponse) error {
	_, err := p.Inspect(a, func(l *compaction.Ledger) {
		if !l.HasTurns() {
			return
		}
		st := l.Describe(s.config.Partitions.Compaction())
		out.Sessions = append(out.Sessions, events.SessionSummary{
			Session: a.Session, Name: nameOf(a.Session), Turns: l.LastTurn(), EstimatedInput: st.Budget.EstimatedInput, AvailableInput: st.Budget.AvailableInput,
			Level: st.Budget.Level, Generation: l.Generation(), LastTurn: st.LastTurnAt,
			Rereads: st.Repeated.Rereads, Reruns: st.Repeated.Reruns, Cost: st.Cost,
		})
	})
	switch {
	case errors.Is(err, partition.ErrNotServing), errors.Is(err, partition.ErrMoved): // since it was found
		return ErrNotServed
	}
	return err
}

// nameOf returns the name that an id encodes, or "" if name and id are equal.
func nameOf(id string) string {
	if name := events.SessionName(id); name != id {
		return name
	}
	return ""
}
