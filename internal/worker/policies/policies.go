package policies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/retry"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Lay lays policies over the worker's config, by tenant. The map has the reasons for ignored policies.
type Lay func(texts map[string][]byte) (*compaction.Config, map[string]error, error)

// Config configures [Policies]. All fields are required.
type Config struct {
	JS       jetstream.JetStream
	Lay      Lay
	Present  func() *compaction.Config // in force
	Apply    func(context.Context, *compaction.Config) error
	MaxBytes func() int // of the text of a config
	Report   func(error)
}

// Policies follows the bucket.
type Policies struct {
	config  Config
	store   *coord.Policies
	changed chan struct{} // one slot
	lost    chan struct{} // one slot: changes may be missing

	mu    sync.Mutex // guards the fields below
	texts map[string][]byte
	wrong map[string]error // reasons for ignored texts
	stop  func()
}

// New returns policies that follow nothing before Start.
func New(c Config) *Policies {
	return &Policies{config: c, store: coord.NewPolicies(c.JS), changed: make(chan struct{}, 1), lost: make(chan struct{}, 1), stop: func() {}}
}

// Start puts the policies of the bucket in force, and begins to follow it.
func (p *Policies) Start(ctx context.Context) error {
	texts := map[string][]byte{} // guarded by mu
	stop, err := p.store.Watch(ctx, func(tenant string, text []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if texts[tenant] = text; text == nil {
			delete(texts, tenant)
		}
		retry.Wake(p.changed)
	}, func(err error) {
		p.config.Report(err)
		retry.Wake(p.lost)
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	former := p.stop
	p.texts, p.stop = texts, stop
	p.mu.Unlock()
	former() // waits for its handler, which locks mu
	return p.apply(ctx)
}

// Run puts changes in force until ctx ends.
func (p *Policies) Run(ctx context.Context) {
	defer func() { p.stop() }()
	for {
		step := p.apply
		select {
		case <-ctx.Done():
			return
		case <-p.lost:
			step = p.Start
		case <-p.changed:
		}
		_ = retry.Every(time.Second).Do(ctx, p.config.Report, func() error { return step(ctx) }) // ends only with ctx
	}
}

// apply puts the current policies in force.
func (p *Policies) apply(ctx context.Context) error {
	p.mu.Lock()
	texts := maps.Clone(p.texts)
	p.mu.Unlock()
	next, wrong, err := p.config.Lay(texts)
	if err != nil {
		return fmt.Errorf("lay policies: %w", err)
	}
	for _, tenant := range slices.Sorted(maps.Keys(wrong)) {
		p.config.Report(fmt.Errorf("the policy of tenant %s is left out, and the tenant has the worker's: %w", tenant, wrong[tenant]))
	}
	p.mu.Lock()
	p.wrong = wrong
	p.mu.Unlock()
	return p.config.Apply(ctx, next)
}

// Set stores the policy of a tenant if it is valid; "" removes it.
func (p *Policies) Set(ctx context.Context, in *events.PolicyRequest) (*events.PoliciesResponse, error) {
	if _, err := p.Check(ctx, in); err != nil {
		return nil, err
	}
	var text []byte // nil removes the policy
	if in.Policy != "" {
		text = []byte(in.Policy)
	}
	if err := p.store.Save(ctx, in.Tenant, text); err != nil {
		return nil, err
	}
	return p.Get(ctx, &events.PoliciesRequest{Tenant: in.Tenant})
}

// Check returns the hash of the policy that Set would store, "" for a removal, or the error of Set.
func (p *Policies) Check(ctx context.Context, in *events.PolicyRequest) (hash string, err error) {
	if in.Policy != "" {
		return coord.PolicyHash([]byte(in.Policy)), p.check(in.Tenant, []byte(in.Policy))
	}
	all, err := p.store.History(ctx, in.Tenant)
	if err == nil && (len(all) == 0 || len(all[len(all)-1].Text) == 0) {
		err = events.Refuse(events.CodeNotFound, "no policy is set for "+in.Tenant+": nothing was removed",
			"Check the tenant's name. A tenant without a policy of its own uses that of the workers.")
	}
	return "", err
}

// check refuses a policy that is not valid with this worker's config.
func (p *Policies) check(tenant string, text []byte) error {
	p.mu.Lock()
	texts := maps.Clone(p.texts)
	p.mu.Unlock()
	if texts == nil {
		texts = map[string][]byte{}
	}
	texts[tenant] = text
	next, wrong, err := p.config.Lay(texts)
	if bad := wrong[tenant]; bad != nil {
		out := &events.Invalid{}
		lines := strings.Split(bad.Error(), "\n  ")
		for _, line := range lines[min(1, len(lines)-1):] { // the first line has their number
			out.Problems = append(out.Problems, events.Problem{Code: events.CodeBadPolicy, Text: line})
		}
		return out
	}
	if err == nil && len(next.Text()) > p.config.MaxBytes() {
		return events.NewInvalid(events.CodeTooLarge, "policy", "would make the config larger than a message of the server: too many tenants have a policy of their own")
	}
	return err
}

// Get returns the policy of a tenant and its revisions, the newest first. With a hash it returns the policy of that
// revision or config.
func (p *Policies) Get(ctx context.Context, in *events.PoliciesRequest) (*events.PoliciesResponse, error) {
	all, err := p.store.History(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	out := &events.PoliciesResponse{V: events.Version, Tenant: in.Tenant, Config: p.config.Present().Hash(), Revisions: []events.PolicyRevision{}}
	for _, r := range slices.Backward(all) {
		one := events.PolicyRevision{Time: r.Time.UnixMilli()}
		if len(r.Text) > 0 {
			one.Hash = coord.PolicyHash(r.Text)
		}
		if in.Hash != "" && one.Hash == in.Hash {
			out.Hash, out.Policy = one.Hash, string(r.Text)
		}
		out.Revisions = append(out.Revisions, one)
	}
	switch {
	case in.Hash != "" && out.Hash == "":
		out.Hash = in.Hash
		out.Policy, err = p.decidedUnder(ctx, in)
	case in.Hash == "" && len(all) > 0 && len(all[len(all)-1].Text) > 0:
		out.Hash, out.Policy = out.Revisions[0].Hash, string(all[len(all)-1].Text)
		p.mu.Lock()
		defer p.mu.Unlock()
		if bad := p.wrong[in.Tenant]; bad != nil && bytes.Equal(p.texts[in.Tenant], all[len(all)-1].Text) {
			out.Problem = bad.Error()
		}
	}
	return out, err
}

// decidedUnder returns the whole policy of a tenant under a config, as JSON.
func (p *Policies) decidedUnder(ctx context.Context, in *events.PoliciesRequest) (policy string, err error) {
	unknown := events.Refuse(events.CodeNotFound, "the hash is of no policy of "+in.Tenant+" and of no config that OUTCOMES has",
		"See the revisions of the tenant, or the field config of an outcome.")
	if !events.ValidID(in.Hash) {
		return "", unknown
	}
	err = commit.GetConfig(ctx, p.config.JS, in.Hash, func(text []byte) error {
		var t struct {
			Policy  codec.Raw            `json:"policy"`
			Tenants map[string]codec.Raw `json:"tenants"`
		}
		if err := codec.Unmarshal(text, &t); err != nil {
			return err
		}
		policy = string(t.Policy)
		if own, ok := t.Tenants[in.Tenant]; ok {
			policy = string(own)
		}
		return nil
	})
	if errors.Is(err, commit.ErrNoConfig) {
		err = unknown
	}
	return policy, err
}
