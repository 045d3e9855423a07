package jsapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/retry"
)

// NoRoom reports whether a stream needs more space than the server, the account, or any
// server of a cluster has left.
func NoRoom(err error) bool {
	if HasCode(err, CodeAccountExceeded, CodeStorageExceeded, CodeStreamBytesExceeded) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == codeNoPeers && strings.Contains(api.Description, "insufficient storage")
}

// Full reports whether a stream, the account or the server had no space for a message.
func Full(err error) bool { return NoRoom(err) || HasCode(err, CodeInsufficient, CodeStoreFailed) }

// ErrNoAnswer: a request timed out, and the context of its caller has not ended.
var ErrNoAnswer = errors.New("no answer")

// Codes of the server (errors.json of nats-server v2.15).
const (
	CodeAccountExceeded     jetstream.ErrorCode = 10002 // resource limits exceeded for account
	codeNoPeers             jetstream.ErrorCode = 10005 // no suitable peers for placement
	CodeNoLeader            jetstream.ErrorCode = 10008 // JetStream system temporarily unavailable
	CodeNotLeader           jetstream.ErrorCode = 10009 // JetStream cluster can not handle request
	CodeInsufficient        jetstream.ErrorCode = 10023 // insufficient resources
	CodeStorageExceeded     jetstream.ErrorCode = 10047 // insufficient storage resources available
	CodeMessageTooLarge     jetstream.ErrorCode = 10054 // message size exceeds maximum allowed
	CodeStreamNotFound      jetstream.ErrorCode = 10059 // stream not found
	CodeWrongLastSequence   jetstream.ErrorCode = 10071 // wrong last sequence: n
	CodeStoreFailed         jetstream.ErrorCode = 10077 // maximum bytes exceeded, and the like
	CodeHeaderTooLarge      jetstream.ErrorCode = 10097 // header size exceeds maximum allowed of 64k
	CodeOffline             jetstream.ErrorCode = 10118 // stream is offline
	CodeStreamBytesExceeded jetstream.ErrorCode = 10122 // stream max bytes exceeds account limit
	codeDuplicateInProcess  jetstream.ErrorCode = 10158 // duplicate message id is in process
	CodeSequenceNotReady    jetstream.ErrorCode = 10163 // expected last sequence per subject temporarily unavailable
	CodeWrongLastConstant   jetstream.ErrorCode = 10164 // wrong last sequence: another commit is in process
	CodeBatchIncomplete     jetstream.ErrorCode = 10176 // atomic publish batch is incomplete
	CodeOfflineReason       jetstream.ErrorCode = 10194 // stream is offline: why
	CodeBatchesInFlight     jetstream.ErrorCode = 10210 // atomic publish too many inflight
)

// HasCode reports whether err is an answer of the JetStream API with one of the codes.
func HasCode(err error, codes ...jetstream.ErrorCode) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && slices.Contains(codes, api.ErrorCode)
}

// Leaderless reports whether there is no leader with a quorum.
func Leaderless(err error) bool {
	return errors.Is(err, ErrNoQuorum) || HasCode(err, CodeNoLeader, CodeNotLeader, CodeOffline, CodeOfflineReason)
}

// Retryable reports whether a read that failed with err may succeed later.
func Retryable(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return slices.Contains([]jetstream.ErrorCode{CodeNoLeader, CodeNotLeader, CodeInsufficient, CodeOffline, CodeOfflineReason}, api.ErrorCode)
	}
	return !Ended(err)
}

// Transient returns a [Retryable] error unchanged for [Retry], and makes any other error final.
func Transient(err error) error {
	return retry.When(Retryable(err), err)
}

// unreachable are the errors of nats.go that reveal nothing about the request.
var unreachable = []error{
	context.DeadlineExceeded, ErrNoAnswer,
	nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrStaleConnection,
	jetstream.ErrNoStreamResponse, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount,
	jetstream.ErrConsumerNotFound, jetstream.ErrConsumerDeleted, jetstream.ErrNoHeartbeat,
}

// Unreachable reports whether err means only that the server could not be reached or
// restarted: the same request may succeed later.
func Unreachable(err error) bool {
	return Leaderless(err) || slices.ContainsFunc(unreachable, func(e error) bool { return errors.Is(err, e) })
}

// Republish reports whether a message that was not acknowledged may be stored by another attempt, under its id. While
// the message of an earlier attempt is being stored, a slightly later one gets its sequence.
func Republish(err error) bool {
	return Unreachable(err) || HasCode(err, codeDuplicateInProcess) || errors.Is(err, nats.ErrReconnectBufExceeded)
}

// NotStored reports whether the error of an attempt to publish means that it stored nothing. After any other error the
// message may be stored.
func NotStored(err error) bool { return errors.As(err, new(*jetstream.APIError)) || NoStream(err) }

// NoAnswer reports whether err means only that the answer timed out.
func NoAnswer(err error) bool {
	return slices.ContainsFunc([]error{context.DeadlineExceeded, ErrNoAnswer, nats.ErrTimeout}, func(e error) bool { return errors.Is(err, e) })
}

// NoStream reports whether no stream was there to store a message.
func NoStream(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders)
}

// Ended reports whether the caller's context ended, or the connection was closed.
func Ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining)
}

// Wrap adds the step to an error; nil stays nil.
func Wrap(err error, format string, v ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(v, err)...)
}
