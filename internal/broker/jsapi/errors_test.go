package jsapi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A request that may succeed later is distinguished from one that would not: an answer of the server, a
// connection that was closed for good, the end of the caller's context.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("open: %w", nats.ErrTimeout), true},
		{fmt.Errorf("open: %w", context.DeadlineExceeded), true},
		{&jetstream.APIError{ErrorCode: CodeNoLeader}, true},
		{jetstream.ErrJetStreamNotEnabled, true},
		{nil, false},
		{context.Canceled, false},
		{nats.ErrConnectionClosed, false},
		{errors.New("hash differs"), false},
		{&jetstream.APIError{ErrorCode: CodeStoreFailed}, false},
	} {
		if got := Unreachable(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// A publish whose answer leaves open whether it was stored is sent again, as is one that the server refused only for
// now. A duplicate is the own event only if an earlier attempt may have stored it.
func TestRepublish(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err              error
		again, notStored bool
	}{
		{nats.ErrTimeout, true, false},
		{context.DeadlineExceeded, true, false},
		{nats.ErrDisconnected, true, false},
		{jetstream.ErrNoStreamResponse, true, true},
		{nats.ErrNoResponders, true, true},
		{&jetstream.APIError{ErrorCode: CodeNoLeader}, true, true},
		{&jetstream.APIError{ErrorCode: codeDuplicateInProcess}, true, true},
		{&jetstream.APIError{ErrorCode: CodeStoreFailed}, false, true},
		{context.Canceled, false, false},
		{nats.ErrConnectionClosed, false, false},
	} {
		err := fmt.Errorf("publish: %w", c.err)
		if Republish(err) != c.again || NotStored(err) != c.notStored {
			t.Errorf("%v: again %t, not stored %t", err, Republish(err), NotStored(err))
		}
	}
}

// Each code that states a full disk, account or stream is room that is missing, whichever a server sends: a
// publish waits for room, and the message names the remedy. Only that of a busy server is read again.
func TestFull(t *testing.T) {
	t.Parallel()
	for code, want := range map[jetstream.ErrorCode]struct{ full, noRoom, again bool }{
		CodeAccountExceeded: {true, true, false}, CodeStorageExceeded: {true, true, false}, CodeStreamBytesExceeded: {true, true, false},
		CodeInsufficient: {true, false, true}, CodeStoreFailed: {true, false, false},
		CodeNoLeader: {false, false, true}, CodeWrongLastSequence: {false, false, false},
	} {
		err := fmt.Errorf("publish: %w", &jetstream.APIError{Code: 503, ErrorCode: code})
		if Full(err) != want.full || NoRoom(err) != want.noRoom || Retryable(err) != want.again {
			t.Errorf("%d: full %t, no room %t, again %t; want %+v", code, Full(err), NoRoom(err), Retryable(err), want)
		}
	}
}
