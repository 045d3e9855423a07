package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/rank"
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

// callSessions is the call of a request for sessions, by the partition with which it goes on. Any
// worker refuses a partition that does not exist.
func (s *Service) callSessions(in *events.SessionsRequest) *call {
	c := &call{
		tenant: in.Tenant, partition: in.After.Partition, in: in,
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
	return c
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

// gatherTime limits the answer of the owner of a partition.
const gatherTime = 5 * time.Second

// partitionOf returns the partition of a request, or [anyWorker] for all partitions and for an unknown one.
func (s *Service) partitionOf(p *int64) int {
	if p == nil || *p >= int64(s.config.Partitions.Count()) {
		return anyWorker
	}
	return int(*p)
}

// checkPartition refuses a partition that the log does not have; nil means all.
func (s *Service) checkPartition(p *int64) error {
	if n := s.config.Partitions.Count(); p != nil && *p >= int64(n) {
		return events.NewInvalid(events.CodeOutOfRange, "partition", fmt.Sprintf("must be between 0 and %d", n-1))
	}
	return nil
}

// gather returns the answers of the owners of all partitions, by partition, and the partitions without an owner
// or without an answer in time. A partition that is still to be split off is not among them: its parent answers for
// its sessions. of returns the call for one partition, or nil to skip it.
func gather[A any](ctx context.Context, s *Service, operation string, within time.Duration, of func(partition int64) *call) (out []*A, missing []int64, err error) {
	o := s.find(operation)
	out = make([]*A, s.config.Partitions.Count())
	errs := make([]error, len(out))
	var asking sync.WaitGroup
	defer asking.Wait()
	account := limit.Of(ctx).Account()
	for id := range out {
		c := of(int64(id))
		if c == nil {
			continue
		}
		if s.elsewhere(c) {
			asking.Go(func() { out[id], errs[id] = ownersAnswer[A](ctx, s, o, c, within, account) })
			continue
		}
		var answer any
		answer, errs[id] = c.answer(ctx)
		out[id], _ = answer.(*A)
	}
	limit.Of(ctx).Rest()
	asking.Wait()
	for id, err := range errs {
		switch {
		case err == nil:
		case Refusal(err).Code == events.CodeUnavailable && ctx.Err() == nil:
			out[id] = nil
			decides, err := s.config.Partitions.Decides(ctx, id)
			if err != nil {
				return nil, nil, orEnded(ctx, err)
			}
			if decides {
				missing = append(missing, int64(id))
			}
		default:
			return nil, nil, orEnded(ctx, err)
		}
	}
	return out, missing, nil
}

// ownersAnswer is the answer of another worker. It leaves the operation of the context to the goroutine that
// answers for other partitions meanwhile.
func ownersAnswer[A any](ctx context.Context, s *Service, o *Operation, c *call, within time.Duration, of limit.Account) (*A, error) {
	request, err := c.payload()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause((*limit.Operation)(nil).With(ctx), within, ErrBusy)
	defer cancel()
	release, err := s.limiter.Hold(ctx, limit.Forwards, of, 1)
	if err != nil {
		return nil, orEnded(ctx, err)
	}
	defer release()
	answer, err := s.ownerAnswer(ctx, o, c, request)
	if err != nil {
		return nil, err
	}
	data, _ := answer.(codec.Raw)
	out := new(A)
	if err := codec.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("read the answer of another worker: %w", err)
	}
	return out, nil
}

// overviews calls fn with every session of a partition, in the time of an operation that computes.
func (s *Service) overviews(ctx context.Context, id int64, fn func(events.Address, *compaction.Overview)) error {
	if err := s.checkPartition(&id); err != nil {
		return err
	}
	p := s.config.Partitions.At(int(id))
	if p == nil {
		return ErrNotServed
	}
	_, err := Reading(ctx, func() (any, error) {
		op := limit.Of(ctx)
		if err := op.Compute(ctx); err != nil {
			return nil, err
		}
		return nil, p.Overviews(func(a events.Address, o *compaction.Overview) error {
			fn(a, o)
			return op.Yield(ctx)
		})
	})
	if errors.Is(err, partition.ErrNotServing) {
		err = ErrNotServed
	}
	return orEnded(ctx, err)
}

// rankSessions lists sessions in one order: those of one partition, or of all.
func (s *Service) rankSessions(ctx context.Context, in *events.SessionsRequest) (*events.SessionsResponse, error) {
	if in.Partition != nil {
		return s.rankPartition(ctx, in)
	}
	answers, missing, err := gather[events.SessionsResponse](ctx, s, "sessions", gatherTime, func(p int64) *call {
		of := *in
		of.Partition = &p
		return s.callSessions(&of)
	})
	if err != nil {
		return nil, err
	}
	out := rank.NewSessions(in)
	out.Missing = missing
	for _, a := range answers {
		if a != nil {
			out.Add(a)
		}
	}
	return out.Page(), nil
}

// rankPartition lists the sessions of one partition.
func (s *Service) rankPartition(ctx context.Context, in *events.SessionsRequest) (*events.SessionsResponse, error) {
	out := rank.NewSessions(in)
	err := s.overviews(ctx, *in.Partition, func(a events.Address, o *compaction.Overview) {
		if in.Tenant == events.AnyTenant || in.Tenant == a.Tenant {
			out.Total++
			out.Take(a, o)
		}
	})
	if err != nil {
		return nil, err
	}
	return out.Page(), nil
}

// tenantsAtOnce limits the tenants in one answer of an owner.
const tenantsAtOnce = 250

// callTenants is the call of a request for tenants.
func (s *Service) callTenants(in *events.TenantsRequest) *call {
	in.Sort = cmp.Or(in.Sort, events.SortInput)
	return &call{
		tenant: events.AnyTenant, partition: s.partitionOf(in.Partition), in: in,
		answer: func(ctx context.Context) (any, error) { return s.tenants(ctx, in) },
	}
}

// tenants lists the tenants of one partition by name, or those of all in one order.
func (s *Service) tenants(ctx context.Context, in *events.TenantsRequest) (*events.TenantsResponse, error) {
	if in.Partition != nil {
		return s.tenantsOf(ctx, in)
	}
	all, missing, err := s.allTenants(ctx)
	if err != nil {
		return nil, err
	}
	rejected, err := s.rejectedByTenant(ctx)
	if err != nil {
		return nil, err
	}
	out := &events.TenantsResponse{V: events.Version, Missing: missing}
	for name, t := range all {
		t.Rejected, t.OutcomeBound = rejected[name], s.config.Partitions.Outcomes.Hourly()
		t.MonthCents = s.config.Partitions.Compaction().For(name).Limits.MonthCents
		if s.config.Spending != nil {
			t.Month = s.config.Spending.Of(name).Nano
		}
	}
	all.Page(in, out)
	return out, nil
}

// allTenants adds up the tenants of all partitions, which their owners list in pages.
func (s *Service) allTenants(ctx context.Context) (all rank.Tenants, missing []int64, err error) {
	all = rank.Tenants{}
	after := make([]*events.Place, s.config.Partitions.Count()) // nil where all were listed
	for i := range after {
		after[i] = &events.Place{}
	}
	for slices.ContainsFunc(after, func(p *events.Place) bool { return p != nil }) {
		answers, without, err := gather[events.TenantsResponse](ctx, s, "tenants", gatherTime, func(p int64) *call {
			if int(p) >= len(after) || after[p] == nil { // the log may have grown meanwhile
				return nil
			}
			return s.callTenants(&events.TenantsRequest{Ranking: events.Ranking{Sort: events.SortName, Partition: &p}, Limit: tenantsAtOnce, After: *after[p]})
		})
		if err != nil {
			return nil, nil, err
		}
		missing = append(missing, without...)
		for i := range after {
			a := answers[i]
			if after[i] = nil; a == nil {
				continue
			}
			after[i] = a.After
			for k := range a.Tenants {
				all.Add(&a.Tenants[k])
			}
		}
	}
	return all, missing, nil
}

// tenantsOf lists the tenants of one partition by name.
func (s *Service) tenantsOf(ctx context.Context, in *events.TenantsRequest) (*events.TenantsResponse, error) {
	all := rank.Tenants{}
	err := s.overviews(ctx, *in.Partition, all.Take)
	if err != nil {
		return nil, err
	}
	if p := s.config.Partitions.At(int(*in.Partition)); p != nil { // the sums are read at the first compaction
		if err := p.ReadHour(ctx); err != nil {
			return nil, orEnded(ctx, err)
		}
	}
	for name, t := range all {
		t.OutcomeBytes = s.config.Partitions.Outcomes.LastHour(int(*in.Partition), name)
	}
	out := &events.TenantsResponse{V: events.Version}
	all.Page(in, out)
	return out, nil
}

// rejectedByTenant counts the session.rejected in OUTCOMES, by tenant.
func (s *Service) rejectedByTenant(ctx context.Context) (map[string]int64, error) {
	stream, err := s.config.JS.Stream(ctx, topology.OutcomesStream)
	if err != nil {
		return nil, fmt.Errorf("count refusals: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(events.RejectedFilter))
	if err != nil {
		return nil, fmt.Errorf("count refusals: %w", err)
	}
	out := map[string]int64{}
	for subject, n := range info.State.Subjects {
		if at, err := events.ParseOutcome(subject); err == nil {
			out[at.Address.Tenant] += int64(n)
		}
	}
	return out, nil
}
