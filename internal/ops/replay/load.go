package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/validate"
)

// LoadConfig describes a load.
type LoadConfig struct {
	Conn *nats.Conn
	// Tenant of the sessions; with several tenants, their names before a number.
	// Default events.DefaultTenant.
	Tenant  string
	Tenants int    // default 1
	Name    string // of the run: sessions are called <name>-1, <name>-2, …

	Sessions int     // agents at once; default 1
	Turns    int     // of each; 0 goes on until Duration is over
	Speed    float64 // times faster than real agents; 0 does not wait at all
	Rate     float64 // most turns a second of all agents; 0 is no bound
	// Duration ends the publishing early, or at all without Turns; 0 is no bound.
	Duration time.Duration
	Window   int64 // context window of the agents' model, in tokens; default 32,000
	// Format is the dialect of what they publish. Default events.Anthropic.
	Format events.Format
	Seed   uint64
	// Progress is called after each turn; it may be nil.
	Progress func()
	// Waiting is that of [Publisher].
	Waiting func(error)
}

// DefaultWindow is small, so that sessions of some tens of turns are compacted.
const DefaultWindow = 32_000

// Load publishes until all agents are done and the workers have decided on it.
func Load(ctx context.Context, c LoadConfig) (*LoadReport, error) {
	c.Tenant, c.Tenants = cmp.Or(c.Tenant, events.DefaultTenant), max(c.Tenants, 1)
	c.Sessions, c.Window = max(c.Sessions, 1), cmp.Or(c.Window, DefaultWindow)
	c.Format = cmp.Or(c.Format, events.Anthropic)
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	f := &fleet{config: c, js: js, agents: map[events.Address]*agent{}, tracker: newTracker()}
	rep, err := f.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return rep, nil
}

// fleet is one call of Load.
type fleet struct {
	config LoadConfig
	js     jetstream.JetStream
	agents map[events.Address]*agent

	tracker *tracker

	mu     sync.Mutex // guards report
	report LoadReport
}

func (f *fleet) run(ctx context.Context) (*LoadReport, error) {
	streams, err := topology.Describe(ctx, f.js)
	if err != nil {
		return nil, err
	}
	state, err := topology.State(ctx, f.js, topology.OutcomesStream)
	if err != nil {
		return nil, err
	}
	stop, err := f.prepare()
	defer stop()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	f.publish(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if took := time.Since(began).Seconds(); took > 0 {
		f.report.TurnsPerSecond = float64(int64(float64(f.report.Turns)/took*10)) / 10
	}
	if err := f.tracker.decided(ctx, f.js, streams.Partitions); err != nil {
		return nil, err
	}
	return f.collect(ctx, state.Last+1)
}

// prepare makes the agents and subscribes for them.
func (f *fleet) prepare() (stop func(), err error) {
	for i := range f.config.Sessions {
		a := events.Address{Tenant: f.tenant(i % f.config.Tenants), Session: fmt.Sprintf("%s-%d", f.config.Name, i+1)}
		if err := a.Validate(); err != nil {
			return func() {}, err
		}
		f.agents[a] = newAgent(a, f.config.Format, f.config.Window, f.config.Seed, i)
	}
	tenants := make([]string, f.config.Tenants)
	for i := range tenants {
		tenants[i] = f.tenant(i)
	}
	return subscribe(f.config.Conn, tenants, []events.Kind{events.KindCompacted, events.KindBudget}, f.receive)
}

func (f *fleet) tenant(i int) string {
	if f.config.Tenants == 1 {
		return f.config.Tenant
	}
	return fmt.Sprintf("%s-%d", f.config.Tenant, i+1)
}

func (f *fleet) receive(m *nats.Msg) {
	now := time.Now()
	k, at, err := events.ParsePublished(m.Subject)
	a := f.agents[at]
	if err != nil || a == nil {
		return // of another fleet
	}
	body, err := events.DecodeOutcome(k, m.Data)
	if err != nil {
		return // counted as undelivered
	}
	switch b := body.(type) {
	case *events.BudgetChanged:
		f.tracker.outcome(b.ID, now)
	case *events.Compacted:
		if b.Compacted {
			a.receive(b)
		}
		f.tracker.outcome(b.ID, now) // last: who waits for the outcome finds it with the agent
	}
}

// publish runs the agents.
func (f *fleet) publish(ctx context.Context) {
	if f.config.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.config.Duration)
		defer cancel()
	}
	limit := rate.Inf
	if f.config.Rate > 0 {
		limit = rate.Limit(f.config.Rate)
	}
	limiter := rate.NewLimiter(limit, 1)
	var wg sync.WaitGroup
	for _, a := range f.agents {
		wg.Go(func() {
			if err := f.live(ctx, a, limiter); err != nil {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.report.Errors = append(f.report.Errors, err.Error())
			}
		})
	}
	wg.Wait()
}

// live runs one agent until its last turn, or until the time is over.
func (f *fleet) live(ctx context.Context, a *agent, limiter *rate.Limiter) error {
	for f.config.Turns == 0 || a.turn < int64(f.config.Turns) {
		if !f.wait(ctx, a, limiter) {
			return nil
		}
		f.apply(a)
		if err := f.send(ctx, a); err != nil && ctx.Err() == nil {
			return fmt.Errorf("session %s, turn %d: %w", a.address, a.turn, err)
		}
	}
	return nil
}

// wait reports false when the time is over.
func (f *fleet) wait(ctx context.Context, a *agent, limiter *rate.Limiter) bool {
	if f.config.Speed > 0 {
		select {
		case <-time.After(time.Duration(float64(a.pause()) / f.config.Speed)):
		case <-ctx.Done():
			return false
		}
	}
	return limiter.Wait(ctx) == nil && ctx.Err() == nil
}

// apply has an agent swap its history for the newest compaction, if it has received one.
func (f *fleet) apply(a *agent) {
	if !a.apply() {
		return
	}
	bad := len(validate.Messages(a.format, a.history())) > 0
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.Applied++
	if bad {
		f.report.InvalidHistories++
	}
}

// errNameUsed: the name of the run was used before, so that nothing was measured.
var errNameUsed = errors.New("the turn was published before, or another tenant has used its id; give the run another --name")

func (f *fleet) send(ctx context.Context, a *agent) error {
	id, data, err := a.nextTurn()
	if err != nil {
		return err
	}
	began := time.Now()
	ack, err := Publisher{f.js, f.config.Waiting}.Persist(ctx, events.KindTurn, a.address, MessageID(a.address, id), data)
	if _, taken := errors.AsType[*stream.IDTakenError](err); taken {
		return fmt.Errorf("%w: %w", errNameUsed, err)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.report.Turns++
	f.report.Bytes += int64(len(data))
	f.report.acks = append(f.report.acks, time.Since(began))
	f.mu.Unlock()
	f.tracker.turn(ack.Sequence, began)
	if f.config.Progress != nil {
		f.config.Progress()
	}
	return nil
}
