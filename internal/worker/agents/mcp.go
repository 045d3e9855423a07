package agents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/agents/mcpserver"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// mcpPath begins the paths of MCP. These paths accept only tokens of a session, and no other path
// accepts such tokens.
const mcpPath = "/mcp/"

// mcpHandler shows a session to a model with a token of the session. docs/adr/0034 has the reason
// for such tokens.
func (e *Edge) mcpHandler() http.Handler {
	h := mcpserver.Handler(func(r *http.Request) *mcp.Server {
		a, err := session(r)
		if err != nil { // cannot happen: the caller has checked it
			return nil
		}
		return mcpserver.New(e.config.Version, a, e.config.Service, func(ctx context.Context) (context.Context, func()) { return e.begin(r.Context(), ctx) })
	})
	return service.Handler(func(w http.ResponseWriter, r *http.Request) error {
		a, err := session(r)
		if own := service.TokenOf(r).Session; err == nil && a.Session != own {
			err = e.requireBranch(r.Context(), events.Address{Tenant: a.Tenant, Session: own}, a)
		}
		if err != nil {
			return err
		}
		count(r, a.Tenant)
		if r.Body != http.NoBody { // the whole body, before the request takes a slot
			body, err := service.ReadBody(w, r, limit.Body{Most: events.MaxRequestBytes})
			if err == nil {
				err = checkBatch(body)
			}
			if err != nil {
				return err
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		c := &calls{}
		defer c.end()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callsKey{}, c)))
		return nil
	})
}

// maxBatch limits the requests in one body: all answers stay in memory until the last is ready.
const maxBatch = 32

func checkBatch(body []byte) error {
	if all, err := codec.ReadArray(body); err == nil && len(all) > maxBatch {
		return events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("the batch has %d requests, more than the %d that one may have", len(all), maxBatch))
	}
	return nil
}

// requireBranch refuses a session that is not a branch of the token's session.
func (e *Edge) requireBranch(ctx context.Context, of, a events.Address) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, service.ErrBusy)
	defer cancel()
	release, err := limit.Of(ctx).Borrow(ctx, service.TurnMemory)
	if err != nil {
		return err
	}
	defer release()
	is, err := service.Reading(ctx, func() (bool, error) { return belongs(ctx, e.config.Service.Answers(), of, a) })
	if err == nil && !is {
		err = errOtherSession
	}
	return err
}

var errOtherSession = events.Refuse(events.CodeForbidden, "the token is not of this session", "A path of /mcp needs a token with the role session, and that session: other tokens are for the other paths.")

// begin makes an operation for one call of a method, since the calls of an HTTP request run at once. The
// returned context ends with the request, unlike the context of a method.
func (e *Edge) begin(request, ctx context.Context) (_ context.Context, end func()) {
	op := e.limiter.Begin(limit.Of(request).Account())
	ctx, cancel := context.WithCancel(op.With(ctx))
	stop := context.AfterFunc(request, cancel)
	of, _ := request.Value(callsKey{}).(*calls)
	return ctx, func() { stop(); cancel(); of.returned(op) }
}

// calls holds the operations of the calls in one HTTP request: their memory counts until the answer to all has left.
type calls struct {
	mu    sync.Mutex // guards the fields below
	ended bool
	ops   []*limit.Operation
}

// callsKey is the key of the calls in the context of an HTTP request.
type callsKey struct{}

// returned takes the operation of a call that has returned.
func (c *calls) returned(op *limit.Operation) {
	op.Rest()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended { // the client has gone
		op.End()
		return
	}
	c.ops = append(c.ops, op)
}

// end ends the operations; a call that has not returned yet ends its own.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, op := range c.ops {
		op.End()
	}
}
