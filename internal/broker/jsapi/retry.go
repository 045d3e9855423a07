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

// pauses are those between the tries of a request.
var pauses = retry.Pauses{First: 5 * time.Millisecond, Last: 500 * time.Millisecond}

// Retry calls op until it succeeds, returns an error of [retry.Final], or ctx ends; then the
// error is that of ctx. The pauses grow from 5 ms to half a second.
func Retry(ctx context.Context, onRetry func(error), op func() error) error {
	return pauses.Do(ctx, onRetry, op)
}

// RetryHedged calls op through [Hedge] until it succeeds, until again refuses its error, or
// until ctx ends. The error is the last one of op. This is the one layer of retries of a read:
// what calls it does not retry.
func RetryHedged[T any](ctx context.Context, op func(context.Context) (T, error), drop func(T), again func(error) bool) (got T, err error) {
	_ = Retry(ctx, nil, func() error { // err has more
		got, err = Hedge(ctx, op, drop)
		return retry.When(err != nil && again(err), err)
	})
	return got, err
}

// ElectionTime is how long a cluster may be without a leader for a stream before that
// is an error; an election takes 4 to 9 seconds, and may have to be repeated.
const ElectionTime = 20 * time.Second

// RetryUntilLeader calls op until the leader answers: again while the server reports that
// there is none, and a second time beside the first while it reports nothing.
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
	// firstHedge is how long an answer is awaited before the same request is sent again,
	// lastHedge the longest time after that.
	firstHedge = 500 * time.Millisecond
	lastHedge  = 2 * time.Second
	// hedgeTimeout bounds one request.
	hedgeTimeout = 10 * time.Second
)

// Hedge calls op, calls it again beside the first call while there is no answer, and returns
// the first answer. A request to a node that is cut off is lost, and the next one may go
// elsewhere; but a cluster under load is slow, and a request that is given up early was
// for nothing. Answers that come too late are dropped.
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

// startTime is how long a start waits for a server that does not answer, or for a
// cluster that elects a leader.
const startTime = time.Minute

// AwaitServer calls op until it succeeds, for as long as it fails because the server
// could not be reached, or a cluster has too few nodes, at most a minute. onWait, if any,
// receives why it waits. That JetStream is not enabled is not waited for.
func AwaitServer(ctx context.Context, onWait func(error), op func() error) error {
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var last error
	_ = Retry(limited, onWait, func() error { // last has more
		last = op()
		off := errors.Is(last, jetstream.ErrJetStreamNotEnabled) || errors.Is(last, jetstream.ErrJetStreamNotEnabledForAccount)
		return retry.When(ctx.Err() == nil && !off && (Unreachable(last) || HasCode(last, codeNoPeers) && !NoRoom(last)), last)
	})
	return last
}
