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
