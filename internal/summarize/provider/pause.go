package provider

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"

	"compactd/internal/summarize/model"
)

// pause states how long to wait before the next attempt, if there is to be one. It
// belongs to one Complete.
type pause struct {
	exponential *backoff.ExponentialBackOff
	left        int       // attempts after this one
	deadline    time.Time // of all attempts
	last        error     // of the latest one
}

// maxPause bounds the exponential part of a pause.
const maxPause = 30 * time.Second

func newPause(all context.Context, c Config) *pause {
	e := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.Backoff),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(max(maxPause, c.Backoff)),
		backoff.WithMaxElapsedTime(0),
	)
	deadline, _ := all.Deadline()
	return &pause{exponential: e, left: c.Attempts - 1, deadline: deadline}
}

// NextBackOff implements [backoff.BackOff]. The pause that the provider requests is a
// least; the exponential part is added, so that workers do not come back all at once.
func (p *pause) NextBackOff() time.Duration {
	if p.left <= 0 || !passing(p.last) {
		return backoff.Stop
	}
	p.left--
	d := p.exponential.NextBackOff() + failure(p.last).RetryAfter
	if time.Now().Add(d).After(p.deadline) {
		return backoff.Stop
	}
	return d
}

// Reset implements [backoff.BackOff].
func (p *pause) Reset() { p.exponential.Reset() }

// passing reports whether the same request may fare better a little later.
func passing(err error) bool {
	switch failure(err).Kind {
	case model.RateLimited, model.Unavailable, model.Timeout:
		return true
	default:
		return false
	}
}
