package spending

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Config configures a [Spending]. All fields are required.
type Config struct {
	JS     jetstream.JetStream
	Config func() *compaction.Config // in force: prices and limits
	Report func(error)
}

// Spending holds the sums of tenants in the current month.
type Spending struct {
	config Config

	mu      sync.Mutex // guards the fields below
	month   string
	tenants map[string]Sum
	read    uint64        // sequence in the log of the last added summary
	moved   chan struct{} // closed with the next summary
}

// Sum is the spending of a tenant in a month, in nanodollars (USD). Unpriced counts summaries without a price.
type Sum struct{ Nano, Unpriced int64 }

// ErrBudget: a tenant has spent its budget of the month, or a model has no price.
var ErrBudget = errors.New("the tenant's budget allows no call of a model")

// New returns a Spending; its sums are empty until Run.
func New(c Config) *Spending {
	return &Spending{config: c, tenants: map[string]Sum{}, moved: make(chan struct{})}
}

// monthOf returns the calendar month of a time.
func monthOf(t time.Time) string { return t.UTC().Format("2006-01") }

// monthStart returns the begin of the month of a time.
func monthStart(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// readPause is the pause before a lost reader is opened again.
const readPause = time.Second

// Run follows the summaries of the log until ctx ends.
func (s *Spending) Run(ctx context.Context) {
	_ = retry.Every(readPause).Do(ctx, s.config.Report, func() error { return s.follow(ctx) }) // ends only with ctx
}

// follow sums up the month until ctx ends. After an error messages may be missing, and Run begins again.
func (s *Spending) follow(ctx context.Context) error {
	start := monthStart(time.Now())
	r, err := stream.OpenReader(ctx, s.config.JS, topology.LogStream, jetstream.ConsumerConfig{
		FilterSubjects: []string{events.SummariesFilter(events.AnyTenant)}, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &start,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.month, s.tenants, s.read = monthOf(start), map[string]Sum{}, 0
	s.mu.Unlock()
	lost := make(chan error, 1)
	r.OnError = func(err error) {
		select {
		case lost <- err:
		default:
		}
	}
	r.Handle(func(m jetstream.Msg, md *jetstream.MsgMetadata) error {
		s.add(m.Subject(), m.Data(), md.Sequence.Stream, md.Timestamp)
		return nil
	})
	r.Start()
	defer r.Stop()
	select {
	case err := <-lost:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add adds one event.
func (s *Spending) add(subject string, data []byte, seq uint64, at time.Time) {
	var sum Sum
	where, err := events.ParseLog(subject)
	if err == nil {
		if made, err := events.DecodeSummary(data); err == nil { // a worker writes only valid ones
			money, unpriced := s.config.Config().Prices.Summary(made)
			sum = Sum{int64(money), unpriced}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if month := monthOf(at); month > s.month {
		s.month, s.tenants = month, map[string]Sum{}
	}
	if monthOf(at) == s.month && sum != (Sum{}) {
		before := s.tenants[where.Address.Tenant]
		s.tenants[where.Address.Tenant] = Sum{before.Nano + sum.Nano, before.Unpriced + sum.Unpriced}
	}
	s.read = seq
	close(s.moved)
	s.moved = make(chan struct{})
}

// Of returns the spending of a tenant this month, up to the last added summary.
func (s *Spending) Of(tenant string) Sum {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.month != monthOf(time.Now()) {
		return Sum{}
	}
	return s.tenants[tenant]
}

// Allow returns [ErrBudget] if a tenant has a budget, and has spent it or one of the models has no price. Without models
// the embedded summarizer writes, which costs nothing.
func (s *Spending) Allow(ctx context.Context, tenant string, models []string) error {
	config := s.config.Config()
	cents := config.For(tenant).Limits.MonthCents
	if cents == 0 || len(models) == 0 {
		return nil
	}
	for _, m := range models {
		if _, priced := config.Prices.Of(m); !priced {
			return fmt.Errorf("%w: %s has no price; add one with --prices", ErrBudget, m)
		}
	}
	if err := s.catchUp(ctx, tenant); err != nil {
		return fmt.Errorf("add up what %s has spent: %w", tenant, err)
	}
	if s.Of(tenant).Nano >= cents*events.NanoPerCent {
		return fmt.Errorf("%w: the money of the month is spent", ErrBudget)
	}
	return nil
}

// catchUp waits until a tenant's last summary in the log is added. It looks for the last one again every lookPause:
// an erasure may remove one that was not read yet.
func (s *Spending) catchUp(ctx context.Context, tenant string) error {
	for {
		last, err := jsapi.GetFromLeader(ctx, s.config.JS.Conn(), topology.LogStream, jsapi.GetRequest{LastFor: events.SummariesFilter(tenant)})
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && last.Time.Before(monthStart(time.Now())) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.reads(ctx, last.Seq) || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

const lookPause = time.Second

// reads waits at most lookPause until all summaries up to a sequence are added, and reports whether they are.
func (s *Spending) reads(ctx context.Context, seq uint64) bool {
	late := time.NewTimer(lookPause)
	defer late.Stop()
	for {
		s.mu.Lock()
		read, moved := s.read, s.moved
		s.mu.Unlock()
		if read >= seq {
			return true
		}
		select {
		case <-moved:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
