package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Pauses sets the pauses between the attempts of an operation: the first one is First, and each
// doubles the previous one, up to Last. If the two differ, each pause varies by up to half, so that
// many clients do not retry at the same moment.
type Pauses struct{ First, Last time.Duration }

// Every returns equal pauses.
func Every(d time.Duration) Pauses { return Pauses{d, d} }

// Do calls op until it returns nil or an error of [Final]. If ctx ends first, Do returns the error of
// ctx. onRetry may be nil; it receives the error before each pause.
func (p Pauses) Do(ctx context.Context, onRetry func(error), op func() error) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(p.First), backoff.WithMultiplier(2), backoff.WithMaxInterval(p.Last), backoff.WithMaxElapsedTime(0),
	)
	if p.First == p.Last {
		b.RandomizationFactor = 0
	}
	return backoff.RetryNotify(op, backoff.WithContext(b, ctx), func(err error, _ time.Duration) {
		if onRetry != nil {
			onRetry(err)
		}
	})
}

// Until calls op until it is done or fails. If ctx ends first, Until returns the error of ctx.
func (p Pauses) Until(ctx context.Context, op func() (done bool, err error)) error {
	return p.Do(ctx, nil, func() error {
		done, err := op()
		if err == nil && !done {
			return errNotDone
		}
		return Final(err)
	})
}

var errNotDone = errors.New("not done yet")

// Tick calls op every d, until ctx ends.
func Tick(ctx context.Context, d time.Duration, op func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			op()
		}
	}
}

// Wake puts a token into a channel of one slot, unless it holds one.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Final wraps an error so that it ends the attempts; nil stays nil.
func Final(err error) error { return backoff.Permanent(err) }

// When returns err if again, else [Final] of err.
func When(again bool, err error) error {
	if again {
		return err
	}
	return Final(err)
}

// IsFinal reports whether an error is from [Final].
func IsFinal(err error) bool {
	_, ok := errors.AsType[*backoff.PermanentError](err)
	return ok
}
