package query

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
)

var errOtherTenant = errors.New("the request names another tenant than its subject")

// addOfTenant answers requests about a session on the subjects of tenants too, which
// a server's permissions distinguish.
func (s *Service) addOfTenant(ctx context.Context, svc micro.Service, e endpoint, next func(context.Context, micro.Request)) error {
	if e.partition == nil {
		return nil
	}
	guarded := func(ctx context.Context, r micro.Request) {
		if !mayReply(r.Reply()) {
			return
		}
		if err := checkTenant(r); err != nil {
			s.answer(r, func() (any, error) { return nil, err })
			return
		}
		next(ctx, r)
	}
	return svc.AddEndpoint(e.name+"-of-tenant", micro.ContextHandler(ctx, guarded), micro.WithEndpointSubject(events.OfTenant(e.subject, "*")), micro.WithEndpointMetadata(s.config.Describe(e.name)))
}

// checkTenant refuses a request whose payload names another tenant than the
// last token of its subject.
func checkTenant(r micro.Request) error {
	asked, err := events.RequestTenant(r.Data())
	if err == nil && asked != r.Subject()[strings.LastIndexByte(r.Subject(), '.')+1:] {
		err = errOtherTenant
	}
	return err
}
