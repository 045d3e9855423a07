package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Codes of the server (errors.json of nats-server v2.15).
const (
	codeAccountExceeded     jetstream.ErrorCode = 10002 // resource limits exceeded for account
	codeNoPeers             jetstream.ErrorCode = 10005 // no suitable peers for placement
	codeNoLeader            jetstream.ErrorCode = 10008 // JetStream system temporarily unavailable
	codeNotLeader           jetstream.ErrorCode = 10009 // JetStream cluster can not handle request
	codeInsufficient        jetstream.ErrorCode = 10023 // insufficient resources
	codeStorageExceeded     jetstream.ErrorCode = 10047 // insufficient storage resources available
	codeMessageTooLarge     jetstream.ErrorCode = 10054 // message size exceeds maximum allowed
	codeWrongLastSequence   jetstream.ErrorCode = 10071 // wrong last sequence: n
	codeStoreFailed         jetstream.ErrorCode = 10077 // maximum bytes exceeded, and the like
	codeHeaderTooLarge      jetstream.ErrorCode = 10097 // header size exceeds maximum allowed of 64k
	codeOffline             jetstream.ErrorCode = 10118 // stream is offline
	codeStreamBytesExceeded jetstream.ErrorCode = 10122 // stream max bytes exceeds account limit
	codeDuplicateInProcess  jetstream.ErrorCode = 10158 // duplicate message id is in process
	codeSequenceNotReady    jetstream.ErrorCode = 10163 // expected last sequence per subject temporarily unavailable
	codeWrongLastConstant   jetstream.ErrorCode = 10164 // wrong last sequence: another commit is in process
	codeBatchIncomplete     jetstream.ErrorCode = 10176 // atomic publish batch is incomplete
	codeOfflineReason       jetstream.ErrorCode = 10194 // stream is offline: why
	codeBatchesInFlight     jetstream.ErrorCode = 10210 // atomic publish too many inflight
)

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && slices.Contains(codes, api.ErrorCode)
}

// retry calls op until it succeeds, returns a [backoff.Permanent] error, or ctx
// ends; then the error is that of ctx. The pauses grow from 5 ms to half a second.
func retry(ctx context.Context, notify func(error, time.Duration), op func() error) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(0),
	)
	return backoff.RetryNotify(op, backoff.WithContext(b, ctx), notify)
}

// electionTime is how long a cluster may be without a leader for a stream before that
// is an error; an election takes 4 to 9 seconds, and may have to be repeated.
const electionTime = 20 * time.Second

// leaderless reports that there is no leader, or none with a quorum.
func leaderless(err error) bool {
	return errors.Is(err, errNoQuorum) || hasCode(err, codeNoLeader, codeNotLeader, codeOffline, codeOfflineReason)
}

// retryUntilLeader calls op until the leader answers: again while the server reports that
// there is none, and a second time beside the first while it reports nothing.
func retryUntilLeader[T any](ctx context.Context, op func(context.Context) (T, error)) (got T, err error) {
	limited, cancel := context.WithTimeout(ctx, electionTime)
	defer cancel()
	_ = retry(limited, nil, func() error { // err says more
		if got, err = hedge(limited, op, nil); leaderless(err) {
			return err
		}
		return permanent(err)
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w within %s", errNoAnswer, electionTime)
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

// hedge asks, asks the same again beside it where there is no answer, and returns the
// first answer. A request to a node that is cut off is lost, and the next one may go
// elsewhere; but a cluster under load is slow, and a request that is given up early was
// for nothing. Answers that come too late are dropped.
func hedge[T any](ctx context.Context, op func(context.Context) (T, error), drop func(T)) (T, error) {
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
			return none, cmp.Or(ctx.Err(), errNoAnswer)
		}
	}
}

// transient keeps an error of a read worth another try, unless no later try can
// do better.
func transient(err error) error {
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	switch {
	case ended(err):
		return backoff.Permanent(err)
	case isAPI && !slices.Contains([]jetstream.ErrorCode{codeNoLeader, codeNotLeader, codeInsufficient, codeOffline, codeOfflineReason}, api.ErrorCode):
		return backoff.Permanent(err)
	default:
		return err
	}
}

// unreachable are the errors of nats.go that reveal nothing about the request.
var unreachable = []error{
	context.DeadlineExceeded, errNoAnswer,
	nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrStaleConnection,
	jetstream.ErrNoStreamResponse, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount,
	jetstream.ErrConsumerNotFound, jetstream.ErrConsumerDeleted, jetstream.ErrNoHeartbeat,
}

// Unreachable reports whether err means only that the server could not be reached, or
// restarted meanwhile: the same may succeed later.
func Unreachable(err error) bool {
	return leaderless(err) || slices.ContainsFunc(unreachable, func(e error) bool { return errors.Is(err, e) })
}

// InProcess reports whether err means that a message of the same id is being stored
// just now: the same try, made a little later, gets its sequence.
func InProcess(err error) bool { return hasCode(err, codeDuplicateInProcess) }

// NoAnswer reports whether err means only that no answer came in time.
func NoAnswer(err error) bool {
	return slices.ContainsFunc([]error{context.DeadlineExceeded, errNoAnswer, nats.ErrTimeout}, func(e error) bool { return errors.Is(err, e) })
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
	_ = retry(limited, func(err error, _ time.Duration) { // last says more
		if onWait != nil {
			onWait(err)
		}
	}, func() error {
		last = op()
		off := errors.Is(last, jetstream.ErrJetStreamNotEnabled) || errors.Is(last, jetstream.ErrJetStreamNotEnabledForAccount)
		if ctx.Err() == nil && !off && (Unreachable(last) || hasCode(last, codeNoPeers) && !noRoom(last)) {
			return last
		}
		return permanent(last)
	})
	return last
}

// permanent makes an error final; nil stays nil.
func permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// ended reports whether the caller gave up, or the connection was closed for good.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining)
}
