package jsapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/retry"
)

// pauses are the pauses between the attempts of a request.
var pauses = retry.Pauses{First: 5 * time.Millisecond, Last: 500 * time.Millisecond}

// Retry calls op until it succeeds or returns an error of [retry.Final]. If ctx ends first, Retry returns
// the error of ctx. The pauses grow from 5 ms to half a second.
func Retry(ctx context.Context, onRetry func(error), op func() error) error {
	return pauses.Do(ctx, onRetry, op)
}

// RetryHedged calls op through [Hedge] until it succeeds, until again refuses its error, or
// until ctx ends. It returns the last error of op. It is the only layer of retries of a read:
// its callers do not retry.
func RetryHedged[T any](ctx context.Context, op func(context.Context) (T, error), drop func(T), again func(error) bool) (got T, err error) {
	_ = Retry(ctx, nil, func() error { // err has the result
		got, err = Hedge(ctx, op, drop)
		return retry.When(err != nil && again(err), err)
	})
	return got, err
}

// ElectionTime limits the wait for a leader of a stream. An election takes 4 to 9 seconds, and may
// have to be repeated.
const ElectionTime = 20 * time.Second

// RetryUntilLeader calls op until the leader answers. It retries while the server reports no
// leader, and hedges while no answer arrives.
func RetryUntilLeader[T any](ctx context.Context, op func(context.Context) (T, error)) (got T, err error) {
	limited, cancel := context.WithTimeout(ctx, ElectionTime)
	defer cancel()
	got, err = RetryHedged(limited, op, nil, Leaderless)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w within %s", ErrNoAnswer, ElectionTime)
	}
	return got, err
}

const (
	// firstHedge is the wait for an answer before the request is sent a second time,
	// lastHedge the longest wait before a later one.
	firstHedge = 500 * time.Millisecond
	lastHedge  = 2 * time.Second
	// hedgeTimeout limits one request with its repetitions.
	hedgeTimeout = 10 * time.Second
)

// Hedge calls op, calls it again beside the first call while there is no answer, and returns
// the first answer. A request to a node that is cut off is lost, and the next one may go
// elsewhere. The first call continues, since a cluster under load is slow. drop receives the
// answers that are too late.
func Hedge[T any](ctx context.Context, op func(context.Context) (T, error), drop func(T)) (T, error) {
	type answer struct {
		got T
		err error
	}
	limited, cancel := context.WithTimeout(ctx, hedgeTimeout)
	defer cancel()
	answers := make(chan answer)
	for pause := firstHedge; ; pause = min(pause*3/2, lastHedge) {
		go func() {
			got, err := op(limited)
			select {
			case answers <- answer{got, err}:
			case <-limited.Done():
				if err == nil && drop != nil {
					drop(got)
				}
			}
		}()
		select {
		case a := <-answers:
			if a.err == nil || limited.Err() == nil {
				return a.got, a.err
			}
		case <-time.After(pause):
		case <-limited.Done():
		}
		if limited.Err() != nil {
			var none T
			return none, cmp.Or(ctx.Err(), ErrNoAnswer)
		}
	}
}

// startTime limits the wait of a start for a server that does not answer, or for the
// election of a leader.
const startTime = time.Minute

// AwaitServer calls op until it succeeds, at most a minute. It retries while the server
// cannot be reached, or a cluster has too few nodes. onWait may be nil; it receives
// the error of each attempt. A server without JetStream is not retried.
func AwaitServer(ctx context.Context, onWait func(error), op func() error) error {
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var last error
	_ = Retry(limited, onWait, func() error { // last has the result
		last = op()
		off := errors.Is(last, jetstream.ErrJetStreamNotEnabled) || errors.Is(last, jetstream.ErrJetStreamNotEnabledForAccount)
		return retry.When(ctx.Err() == nil && !off && (Unreachable(last) || HasCode(last, codeNoPeers) && !NoRoom(last)), last)
	})
	return last
}
