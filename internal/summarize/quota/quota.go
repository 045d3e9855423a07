package quota

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// maxTenants bounds the tenants whose shares are kept, about 300 bytes each.
const maxTenants = 10_000

// Limits are the share of each tenant in each worker; 0 is no bound.
type Limits struct {
	// CallsPerMinute counts what is requested, tries with a shorter prompt and of the
	// next model included, but not what a provider's client retries inside.
	CallsPerMinute int
	// TokensPerHour counts input and output.
	TokensPerHour int
}

// Any reports whether anything is bounded.
func (l Limits) Any() bool { return l.CallsPerMinute > 0 || l.TokensPerHour > 0 }

// Quota keeps the shares of tenants.
type Quota struct {
	limits Limits

	mu     sync.Mutex // guards the fields below
	shares map[string]*list.Element
	recent *list.List // of *share; the front was used last
}

// share is what a tenant has left.
type share struct {
	tenant        string
	calls, tokens *rate.Limiter
}

// New returns a quota under which every tenant has its whole share.
func New(l Limits) *Quota {
	return &Quota{limits: l, shares: map[string]*list.Element{}, recent: list.New()}
}

// Guard returns m for those who have something left: Complete is on the account of
// the request's Tenant. Without limits it is m itself.
func (q *Quota) Guard(m model.Model) model.Model {
	if !q.limits.Any() {
		return m
	}
	return &guarded{Model: m, quota: q}
}

// of returns the share of a tenant.
func (q *Quota) of(tenant string) *share {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e, ok := q.shares[tenant]; ok {
		q.recent.MoveToFront(e)
		return e.Value.(*share)
	}
	if q.recent.Len() >= maxTenants {
		oldest := q.recent.Remove(q.recent.Back()).(*share)
		delete(q.shares, oldest.tenant)
	}
	s := &share{tenant, limiter(q.limits.CallsPerMinute, time.Minute), limiter(q.limits.TokensPerHour, time.Hour)}
	q.shares[tenant] = q.recent.PushFront(s)
	return s
}

func limiter(n int, per time.Duration) *rate.Limiter {
	if n <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(float64(n)/per.Seconds()), n)
}

// admit takes a call from the share, if there is one left and no token is owed.
func (s *share) admit(now time.Time) bool {
	owes := s.tokens.Limit() != rate.Inf && s.tokens.TokensAt(now) <= 0
	return !owes && s.calls.AllowN(now, 1)
}

// charge takes tokens, and owes those that are not there.
func (s *share) charge(now time.Time, tokens int64) {
	if s.tokens.Limit() == rate.Inf {
		return
	}
	for most := int64(s.tokens.Burst()); tokens > 0; tokens -= most { // a limiter takes its burst at most
		s.tokens.ReserveN(now, int(min(tokens, most)))
	}
}

// guarded is a model behind a quota.
type guarded struct {
	model.Model
	quota *Quota
}

var errShare = errors.New("the tenant has used up its share of model calls or tokens")

// Complete implements [model.Model].
func (g *guarded) Complete(ctx context.Context, r model.Request) (model.Reply, error) {
	s := g.quota.of(r.Tenant)
	if !s.admit(time.Now()) {
		return model.Reply{}, &model.Error{Kind: model.OverQuota, Err: errShare}
	}
	reply, err := g.Model.Complete(ctx, r)
	s.charge(time.Now(), cost(r, reply, err))
	return reply, err
}

// bytesPerToken is a usual ratio of English text and code.
const bytesPerToken = 4

// cost is what a call took, in tokens.
func cost(r model.Request, reply model.Reply, err error) int64 {
	if err == nil && reply.Usage == (events.SummaryUsage{}) {
		return int64(len(r.System)+len(r.User)+len(reply.Text)) / bytesPerToken
	}
	return reply.Usage.Input + reply.Usage.Output
}
