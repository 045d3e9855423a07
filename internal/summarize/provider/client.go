package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// completer is one call to a provider, in its wire format. An error of its transport is
// a [*model.Error]; any other error is an answer in an unexpected shape.
type completer interface {
	complete(ctx context.Context, r model.Request) (model.Reply, error)
}

// client is a completer with time-outs, retries, a breaker and a rate limit:
// there is one mechanism for each, for all wire formats.
type client struct {
	config    Config
	completer completer
	breaker   *gobreaker.CircuitBreaker[model.Reply]
	calls     *rate.Limiter
	last      atomic.Pointer[error] // failure that the breaker counted last
}

// New returns a model, or every invalid field of c in one error. It makes no request.
// See docs/adr/0011.
func New(c Config) (model.Model, error) {
	p, ok := presets[c.Provider]
	if !ok {
		return nil, fmt.Errorf("unknown provider %q: one of %s", c.Provider, names())
	}
	c = c.withDefaults(p)
	if err := c.validate(p); err != nil {
		return nil, err
	}
	completer, err := p.wire(c, p)
	if err != nil {
		return nil, fmt.Errorf("model provider %s: %w", c.Provider, err)
	}
	limit := rate.Inf
	if c.PerMinute > 0 {
		limit = rate.Every(time.Minute / time.Duration(c.PerMinute))
	}
	return &client{config: c, completer: completer, breaker: newBreaker(), calls: rate.NewLimiter(limit, 1)}, nil
}

func names() string {
	var s []string
	for _, n := range Names() {
		s = append(s, string(n))
	}
	return strings.Join(s, ", ")
}

// After breakAfter failures in a row no calls are made for breakFor, then one as a probe.
const (
	breakAfter = 5
	breakFor   = time.Minute
)

func newBreaker() *gobreaker.CircuitBreaker[model.Reply] {
	return gobreaker.NewCircuitBreaker[model.Reply](gobreaker.Settings{
		Timeout:      breakFor,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= breakAfter },
		IsSuccessful: func(err error) bool { return err == nil || !unwell(err) },
		IsExcluded:   unasked,
	})
}

// unwell reports whether a failure is the provider's, and not the request's. A rate limit does not count: the
// pause answers it.
func unwell(err error) bool {
	switch failure(err).Kind {
	case model.Unavailable, model.Timeout, model.BadAnswer, model.Auth:
		return true
	default:
		return false
	}
}

// unasked reports whether a failure is not the provider's.
func unasked(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, errPerMinute)
}

func (c *client) Name() string { return string(c.config.Provider) + "/" + c.config.Model }

func (c *client) Limits() model.Limits {
	return model.Limits{Window: c.config.Window, MaxOutput: c.config.MaxOutput}
}

// Complete implements [model.Model].
func (c *client) Complete(ctx context.Context, r model.Request) (model.Reply, error) {
	if r.MaxOutputTokens <= 0 || r.MaxOutputTokens > c.config.MaxOutput {
		r.MaxOutputTokens = c.config.MaxOutput
	}
	all, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	pauses := newPauses(c.config)
	reply, err := c.attempt(all, r)
	for left := c.config.Attempts - 1; left > 0 && passing(err); left-- {
		// The pause that the provider requests is a least; the other part is added, so that workers do not come
		// back all at once.
		if !wait(all, pauses.NextBackOff()+failure(err).RetryAfter) {
			break
		}
		reply, err = c.attempt(all, r)
	}
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return model.Reply{Usage: reply.Usage}, ctx.Err()
	default:
		return model.Reply{Usage: reply.Usage}, fmt.Errorf("%s: %w", c.Name(), err)
	}
}

// maxPause bounds a pause, apart from the part that a provider requests.
const maxPause = 30 * time.Second

func newPauses(c Config) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.Backoff), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(max(maxPause, c.Backoff)), backoff.WithMaxElapsedTime(0),
	)
}

// wait reports whether a pause went by. It waits for none that ends after the deadline.
func wait(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Now().Add(d).After(deadline) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// passing reports whether the same request may fare better a little later.
func passing(err error) bool {
	switch failure(err).Kind {
	case model.RateLimited, model.Unavailable, model.Timeout:
		return true
	default:
		return false
	}
}

// attempt calls once, if the breaker and the rate limit let it, in this order:
// no caller waits for a provider that is not to be called.
func (c *client) attempt(all context.Context, r model.Request) (model.Reply, error) {
	reply, err := c.breaker.Execute(func() (model.Reply, error) {
		if err := c.calls.Wait(all); err != nil {
			return model.Reply{}, &model.Error{Kind: model.RateLimited, Err: errPerMinute}
		}
		one, cancel := context.WithTimeout(all, c.config.AttemptTimeout)
		defer cancel()
		reply, err := c.call(one, r)
		if err = fault(one, err); unwell(err) {
			c.last.Store(&err)
		}
		return reply, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return model.Reply{}, &model.Error{Kind: model.CircuitOpen, Err: c.cause()}
	}
	return reply, err
}

// cause states in words why the breaker is open: a log may show nothing but calls that
// were not made. The failure is not wrapped, its kind is not that of this call.
func (c *client) cause() error {
	if last := c.last.Load(); last != nil {
		return fmt.Errorf("after %s", (*last).Error())
	}
	return nil
}

// call makes one request, and checks what all wire formats have in common.
func (c *client) call(ctx context.Context, r model.Request) (reply model.Reply, err error) {
	defer func() {
		if recover() != nil { // a library met an answer or a credential that its authors did not think of
			reply, err = model.Reply{}, &model.Error{Kind: model.BadAnswer, Err: errForeign}
		}
	}()
	r.System, r.User = strings.ToValidUTF8(r.System, "\uFFFD"), strings.ToValidUTF8(r.User, "\uFFFD")
	if reply, err = c.completer.complete(ctx, r); err != nil {
		return model.Reply{Usage: bounded(reply.Usage)}, err
	}
	return c.clean(reply)
}

// clean bounds what a provider reports.
func (c *client) clean(r model.Reply) (model.Reply, error) {
	r.Text = strings.ToValidUTF8(r.Text, "\uFFFD")
	if !validModel(r.Model) {
		r.Model = c.config.Model
	}
	r.Usage = bounded(r.Usage)
	complete := r.Finish == model.FinishStop || r.Finish == model.FinishOther
	if complete && strings.TrimSpace(r.Text) == "" {
		return model.Reply{Usage: r.Usage}, &model.Error{Kind: model.BadAnswer, Err: errEmpty}
	}
	return r, nil
}

// bounded is what a provider counted, within sense.
func bounded(u events.SummaryUsage) events.SummaryUsage {
	return events.SummaryUsage{Input: min(max(u.Input, 0), maxUsage), Output: min(max(u.Output, 0), maxUsage)}
}

// maxUsage exceeds any model's tokens, and sums of it do not overflow.
const maxUsage = 100_000_000
