package commit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
)

// StoreFullError reports that the server has no space. This attempt stored nothing; the same
// commit may be tried again when there is space.
type StoreFullError struct {
	Code   int // of the server
	Reason string
}

func (e *StoreFullError) Error() string {
	return fmt.Sprintf("%s is full: %s (%d); raise its size, shorten its age, or free disk space", topology.OutcomesStream, e.Reason, e.Code)
}

// TooLargeError reports a message over a limit. If Limit is set, nothing was sent; otherwise the
// server refused the whole commit.
type TooLargeError struct {
	Subject string
	Size    int // with headers, in bytes
	Limit   int // of the server, in bytes; 0 if it gave none
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message of %d bytes for %s is over the server's limit of %d; raise its max_payload", e.Size, e.Subject, e.Limit)
}

// pubAck is the answer to a publish. Only the answer to a batch has a Count.
type pubAck struct {
	Stream string              `json:"stream"`
	Seq    uint64              `json:"seq"`
	Count  int                 `json:"count"`
	Error  *jetstream.APIError `json:"error"`
}

// refusal is the server's error answer to a commit.
type refusal struct {
	*jetstream.APIError
	subject string
	size    int
}

func (r *refusal) Unwrap() error { return r.APIError }

// classify interprets the error of a failed attempt. unknown means that the commit may be stored. Otherwise
// the error is [retry.Final] or may be retried.
func classify(err error) (unknown bool, _ error) {
	r, refused := errors.AsType[*refusal](err)
	switch {
	case retry.IsFinal(err):
		return false, err
	case refused:
		return r.classify()
	case jsapi.Ended(err):
		return false, retry.Final(err)
	default:
		return true, err
	}
}

func (r *refusal) classify() (unknown bool, _ error) {
	switch r.ErrorCode {
	case jsapi.CodeWrongLastSequence:
		return true, r
	case jsapi.CodeNoLeader, jsapi.CodeNotLeader, jsapi.CodeOffline, jsapi.CodeOfflineReason, jsapi.CodeSequenceNotReady,
		jsapi.CodeWrongLastConstant, jsapi.CodeBatchIncomplete, jsapi.CodeBatchesInFlight:
		return false, r
	case jsapi.CodeStoreFailed:
		if strings.Contains(r.Description, "message too large") {
			return false, retry.Final(&TooLargeError{Subject: r.subject, Size: r.size})
		}
		return false, retry.Final(&StoreFullError{int(r.ErrorCode), r.Description})
	case jsapi.CodeAccountExceeded, jsapi.CodeInsufficient, jsapi.CodeStorageExceeded, jsapi.CodeStreamBytesExceeded:
		return false, retry.Final(&StoreFullError{int(r.ErrorCode), r.Description})
	case jsapi.CodeMessageTooLarge, jsapi.CodeHeaderTooLarge:
		return false, retry.Final(&TooLargeError{Subject: r.subject, Size: r.size})
	default:
		return false, retry.Final(r)
	}
}
