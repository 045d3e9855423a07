package inspect

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/ops/units"
)

// Refusals pass what the server refuses the user of a connection on to the check that waits for the
// answer. The server sends a refusal to the connection, not to the request, which would wait for its
// own time-out.
type Refusals struct {
	mu      sync.Mutex
	refused context.CancelCauseFunc // ends the check that runs; nil between checks
}

// OnError is the handler of errors of the connection.
func (r *Refusals) OnError(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused != nil {
		r.refused(err)
	}
}

// during passes refusals on to a check, or to none.
func (r *Refusals) during(refused context.CancelCauseFunc) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = refused
}

// checkWait bounds one check, of all partitions.
const checkWait = 30 * time.Second

// ask runs a check that sends requests. One that the server refuses, or that takes too long, is one
// finding, with a code.
func (d *doctor) ask(ctx context.Context, name string, check func(context.Context)) {
	ctx, refused := context.WithCancelCause(ctx)
	defer refused(nil)
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	before := len(d.Findings)
	d.Refusals.during(refused)
	check(ctx)
	d.Refusals.during(nil)
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, nats.ErrPermissionViolation):
		d.Findings = d.Findings[:before]
		_, why, _ := strings.Cut(cause.Error(), nats.ErrPermissionViolation.Error()+": ")
		d.problem(name, "run doctor as a worker or an operator, see deploy/cluster", "not checked, %s: %s", events.CodeForbidden, cmp.Or(why, cause.Error()))
		d.Findings[before].Code = events.CodeForbidden
	case errors.Is(cause, context.DeadlineExceeded):
		d.Findings = d.Findings[:before]
		d.problem(name, "are the server and its disk well?", "not checked, %s: no answer within %s", events.CodeUnavailable, units.Span(checkWait))
		d.Findings[before].Code = events.CodeUnavailable
	}
}
