package service

import (
	"context"
	"net/http"

	"compactd/internal/events"
	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
)

// caller is the sender of a request, with its address over HTTP.
type caller struct {
	*tokens.Entry
	From string
}

type callerKey struct{} // of the caller in a context

// callerOf returns the sender of a request, without a role if it is not known.
func callerOf(ctx context.Context) (c caller, known bool) {
	if c, known = ctx.Value(callerKey{}).(caller); !known {
		c.Entry = &tokens.Entry{}
	}
	return c, known
}

// TokenOf returns the token of a request that [Guard.Before] passed on.
func TokenOf(r *http.Request) *tokens.Entry {
	c, _ := callerOf(r.Context())
	return c.Entry
}

// allowed refuses an earlier history of a private tenant, which has the originals. Operators may read it.
func (s *Service) allowed(ctx context.Context, c *call) error {
	in, ok := c.in.(*events.ContextRequest)
	if by, _ := callerOf(ctx); !ok || in.Generation == nil || by.Role == tokens.RoleOperator {
		return nil
	}
	return s.MayRecall(c.tenant)
}

// recorded records that an operator reads content or sets a policy. If the entry cannot be stored,
// there is no answer. A sync over NATS is an agent's.
func (s *Service) recorded(ctx context.Context, o *Operation, c *call) error {
	by, _ := callerOf(ctx)
	if by.Role != tokens.RoleOperator || !o.audited && (!o.syncs || by.From == "") {
		return nil
	}
	e := events.AuditEntry{Action: o.Name, Caller: by.Name, From: by.From, Tenant: c.tenant, Session: c.session}
	if in, ok := c.in.(*events.PolicyRequest); ok && s.config.Policies != nil {
		e.Tenant = in.Tenant
		hash, err := s.config.Policies.Check(ctx, in)
		e.Hash, e.Code = hash, events.CodeOf(err)
	}
	return s.Record(ctx, e, "")
}

// Record stores an entry of the audit log. Workers that record the same thing give it the same id;
// "" is for all other entries.
func (s *Service) Record(ctx context.Context, e events.AuditEntry, id string) error {
	if s.config.Audit == nil {
		return nil
	}
	return orEnded(ctx, limit.Of(ctx).Idle(ctx, func() error {
		err := s.config.Audit.Record(ctx, e, id)
		if err != nil {
			s.config.Listener.Retry(-1, "record", err)
			err = events.Refuse(events.CodeUnavailable, "the audit log takes no entry now", "Ask again in a moment; see worker doctor.")
		}
		return err
	}))
}
