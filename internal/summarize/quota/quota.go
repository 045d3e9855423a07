package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize/model"
)

// Limits are the share of each tenant; 0 is no bound.
type Limits struct {
	// CallsPerMinute counts requests, including tries with a shorter prompt and of the next model, but not
	// retries inside a provider's client.
	CallsPerMinute int
	// TokensPerHour counts input and output.
	TokensPerHour int
}

// Any reports whether anything is bounded.
func (l Limits) Any() bool { return l.CallsPerMinute > 0 || l.TokensPerHour > 0 }

const (
	// storeTimeout bounds each wait of a call for the store.
	storeTimeout = 5 * time.Second
	// maxTries bounds the writes of a share that other workers write at the same time.
	maxTries = 16
)

// Quota counts what tenants use.
type Quota struct {
	limits Limits
	store  Store
	owners *otter.Cache[string, *tenant]
}

// maxTenants bounds the tenants in a worker's memory, about 300 bytes each.
const maxTenants = 10_000

// tenant is this worker's state of a tenant.
type tenant struct {
	name string

	mu   sync.Mutex // guards the field below, and one write at a time
	owed int64      // tokens that the store has not counted yet
}

// New returns a quota that counts in a store.
func New(l Limits, s Store) *Quota {
	return &Quota{limits: l, store: s, owners: otter.Must(&otter.Options[string, *tenant]{MaximumSize: maxTenants})}
}

// Guard returns m bounded by the quota of each tenant: Complete charges the request's Tenant
// and fails when nothing is left. Without limits it returns m itself.
func (q *Quota) Guard(m model.Model) model.Model {
	if !q.limits.Any() {
		return m
	}
	return &guarded{Model: m, quota: q}
}

// of returns a tenant; one without a name has an account too.
func (q *Quota) of(name string) *tenant {
	name = cmp.Or(name, events.Unknown)
	t, _ := q.owners.ComputeIfAbsent(name, func() (*tenant, bool) { return &tenant{name: name}, false })
	return t
}

// The reasons why a call is refused.
var (
	errShare   = errors.New("the tenant has used up its share of model calls or tokens")
	errUnknown = errors.New("the use of the tenant is unknown")
	errBusy    = errors.New("too many other workers write it")
)

// admit takes a call from the share of a tenant, and writes owed tokens with it.
func (q *Quota) admit(ctx context.Context, t *tenant) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := q.update(ctx, t, func(u *used, now int64) (write bool, err error) {
		if u.owes(now, q.limits) || !u.call(now, q.limits) {
			return t.owed > 0, errShare
		}
		return t.owed > 0 || q.limits.CallsPerMinute > 0, nil
	})
	if err != nil && !errors.Is(err, errShare) {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return err
}

// charge counts the tokens of a call. If the store does not answer they are written with the next call, or
// are lost with the process.
func (q *Quota) charge(ctx context.Context, t *tenant, tokens int64) {
	if q.limits.TokensPerHour <= 0 || tokens <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owed += tokens
	_ = q.update(ctx, t, func(*used, int64) (bool, error) { return true, nil }) // see above
}

// update changes the used share of a tenant, by owed tokens and by change, which reports whether to write.
// The error of change is the result once that is done.
func (q *Quota) update(ctx context.Context, t *tenant, change func(u *used, now int64) (write bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for range maxTries {
		value, revision, err := q.store.Load(ctx, t.name)
		if err != nil {
			return err
		}
		u, err := readUsed(value)
		if err != nil {
			return err
		}
		now := time.Now().UnixNano()
		u.charge(now, t.owed, q.limits)
		write, refused := change(&u, now)
		if !write {
			return refused
		}
		if value, err = codec.Marshal(u); err != nil {
			return err
		}
		saved, err := q.store.Save(ctx, t.name, value, revision)
		if err != nil {
			return err
		}
		if saved {
			t.owed = 0
			return refused
		}
	}
	return errBusy
}

// guarded is a model behind a quota.
type guarded struct {
	model.Model
	quota *Quota
}

// Complete implements [model.Model].
func (g *guarded) Complete(ctx context.Context, r model.Request) (model.Reply, error) {
	t := g.quota.of(r.Tenant)
	if err := g.quota.admit(ctx, t); err != nil {
		return model.Reply{}, &model.Error{Kind: model.OverQuota, Err: err}
	}
	reply, err := g.Model.Complete(ctx, r)
	g.quota.charge(context.WithoutCancel(ctx), t, cost(r, reply, err))
	return reply, err
}

// bytesPerToken is a usual ratio of English text and code.
const bytesPerToken = 4

// cost is the cost of a call, in tokens.
func cost(r model.Request, reply model.Reply, err error) int64 {
	if err == nil && reply.Usage == (events.SummaryUsage{}) {
		return int64(len(r.System)+len(r.User)+len(reply.Text)) / bytesPerToken
	}
	return reply.Usage.Input + reply.Usage.Output
}
