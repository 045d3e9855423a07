package agents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/agents/mcpserver"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/query"
)

// mcpPath is what the paths of MCP begin with. Tokens of a session are for these alone, and
// these for such tokens.
const mcpPath = "/mcp/"

// mcpHandler shows a session to the model that has a token of it. docs/adr/0034 has why no
// other token is for it.
func (e *Edge) mcpHandler() http.Handler {
	h := mcpserver.Handler(func(r *http.Request) *mcp.Server {
		a, err := session(r)
		if err != nil { // it was checked
			return nil
		}
		return mcpserver.New(e.config.Version, a, &source{e, a, r.Context()})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := session(r)
		if own := tokenOf(r).session; err == nil && a.Session != own {
			err = e.branch(r.Context(), events.Address{Tenant: a.Tenant, Session: own}, a)
		}
		if err != nil {
			query.WriteError(w, query.Refusal(err))
			return
		}
		count(r, a.Tenant)
		if r.Body != http.NoBody { // places are for requests that are there
			body, err := query.ReadBody(w, r, limit.Body{Most: events.MaxRequestBytes})
			if err == nil {
				err = checkBatch(body)
			}
			if err != nil {
				query.WriteError(w, query.Refusal(err))
				return
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		h.ServeHTTP(w, r)
	})
}

// maxBatch bounds the requests in one body: the answers of all are in memory until the last is there.
const maxBatch = 32

func checkBatch(body []byte) error {
	if all, err := codec.ReadArray(body); err == nil && len(all) > maxBatch {
		return events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("the batch has %d requests, more than the %d that one may have", len(all), maxBatch))
	}
	return nil
}

// branch refuses a session that is no branch of the one of a token.
func (e *Edge) branch(ctx context.Context, of, a events.Address) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	is, err := query.Reading(ctx, func() (bool, error) { return belongs(ctx, e.config.Read, of, a) })
	if err == nil && !is {
		err = errOtherSession
	}
	return err
}

var errOtherSession = refusal(events.CodeForbidden, "the token is not of this session", "A path of /mcp needs a token with the role session, and that session: other tokens are for the other paths.")

// source reads a session for its model.
type source struct {
	edge    *Edge
	at      events.Address
	request context.Context //nolint:containedctx // of the HTTP request, whose end the contexts of its tools do not see
}

// begin is for one tool: those of a request run at once, and each is an operation of its own, which
// ends with the request.
func (s *source) begin(ctx context.Context) (_ context.Context, end func()) {
	op := s.edge.limiter.Begin(limit.Of(s.request).Account())
	ctx, cancel := context.WithCancel(op.With(ctx))
	stop := context.AfterFunc(s.request, cancel)
	return ctx, func() { stop(); cancel(); op.End() }
}

func (s *source) Ask(ctx context.Context, operation string, in, out any) error {
	ctx, end := s.begin(ctx)
	defer end()
	service, err := s.edge.config.Service()
	if err != nil {
		return query.Refusal(err)
	}
	data, err := events.Marshal(in)
	if err != nil {
		return fmt.Errorf("request %s: %w", operation, err)
	}
	answer, err := service.Ask(ctx, operation, data)
	if err != nil {
		return err
	}
	if err := events.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("read the answer to %s: %w", operation, err)
	}
	return nil
}

func (s *source) Compactions(ctx context.Context, fn func(*events.Compacted) error) error {
	ctx, end := s.begin(ctx)
	defer end()
	_, err := query.Reading(ctx, func() (any, error) { return nil, s.compactions(ctx, fn) })
	return err
}

func (s *source) compactions(ctx context.Context, fn func(*events.Compacted) error) error {
	subject := events.Outcome(events.PartitionOf(s.at, s.edge.config.Partitions), events.KindCompacted, s.at)
	return stream.ReadSubject(ctx, s.edge.config.Read, topology.OutcomesStream, subject, 1, func(m stream.LogMessage) error {
		body, err := events.DecodeOutcome(events.KindCompacted, m.Data)
		if c, ok := body.(*events.Compacted); ok && err == nil { // not overwritten by an erasure
			return fn(c)
		}
		return nil
	})
}

func (s *source) Compact(ctx context.Context, focus string) (*events.EventResponse, error) {
	ctx, end := s.begin(ctx)
	defer end()
	event := &events.EventResponse{V: events.Version, ID: uuid.NewString()}
	body, err := events.Marshal(&events.Compact{ID: event.ID, Focus: focus})
	if err != nil {
		return nil, err
	}
	v := verbOf(events.KindCompact)
	if _, err = v.decode(body); err != nil {
		return nil, err
	}
	if event.Seq, event.Duplicate, err = s.edge.deliver(ctx, v.kind, s.at, event.ID, body); err != nil {
		return nil, err
	}
	_, err = s.edge.answered(ctx, s.at, v, event, time.Now().Add(events.DefaultWait))
	return event, err
}
