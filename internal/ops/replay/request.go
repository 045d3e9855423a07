package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
)

// requestTimeout is longer than a worker takes for any answer.
const requestTimeout = 15 * time.Second

// ErrNoWorker: no worker answers requests.
var ErrNoWorker = errors.New("no worker is running")

// Request sends a request to the workers and reads the answer into out. A refusal
// is an [*events.ServiceError]; without any worker it is ErrNoWorker.
func Request(ctx context.Context, nc *nats.Conn, subject string, in, out any) error {
	data, err := events.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("request %s: %w", subject, ErrNoWorker)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("request %s: no answer within %s; is the worker connected?", subject, requestTimeout)
	case err != nil:
		return fmt.Errorf("request %s: %w", subject, err)
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		e := &events.ServiceError{}
		if events.Unmarshal(m.Data, e) != nil || e.Code == "" {
			e = &events.ServiceError{Code: events.Code(code), Message: m.Header.Get(micro.ErrorHeader)}
		}
		return fmt.Errorf("request %s: %w", subject, e)
	}
	if err := events.Unmarshal(m.Data, out); err != nil {
		return fmt.Errorf("request %s: read the answer: %w", subject, err)
	}
	return nil
}
