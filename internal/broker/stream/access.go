package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
)

// MayRead reports whether this connection's user may read the streams. A user that is restricted to
// one tenant may not, and queries a worker instead.
func MayRead(ctx context.Context, nc *nats.Conn) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	subject := jsapi.SubjectGet + topology.OutcomesStream
	sub, err := nc.SubscribeSync(nc.NewRespInbox())
	if err != nil {
		return false, fmt.Errorf("check the permission to read: %w", err)
	}
	defer sub.Unsubscribe()
	before := nc.LastError()
	if err := nc.PublishRequest(subject, sub.Subject, []byte(`{"seq":1}`)); err != nil {
		return false, fmt.Errorf("check the permission to read: %w", err)
	}
	if err := nc.FlushWithContext(ctx); err != nil { // a refusal arrives before the answer to the flush
		return false, fmt.Errorf("check the permission to read: %w", err)
	}
	if err := nc.LastError(); err != before && errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), subject) { //nolint:errorlint // compares identity: a new error since before
		return false, nil
	}
	_, err = sub.NextMsgWithContext(ctx)
	if errors.Is(err, nats.ErrNoResponders) {
		return false, nil // an account without JetStream
	}
	return err == nil, err
}
