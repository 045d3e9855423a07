package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"compactd/client"
	"compactd/internal/events/codec"
)

// Transport is an [http.RoundTripper] that fits the histories of requests into windows.
type Transport struct {
	// Fitter is required.
	Fitter *client.Fitter
	// Session names the conversation of requests without a name in their context; see [WithSession].
	Session string
	// SessionOf names the conversation of a request instead of Session; nil for none. A request without a
	// name passes unchanged.
	SessionOf func(*Call) string
	// Config has settings that the requests do not contain, such as the window of the model. A zero field is
	// read from the request.
	Config client.Config
	// Audit: each history is recorded, and sent unchanged. A [Report] has the possible saving.
	Audit bool
	// CountTokens: requests that count tokens (…/messages/count_tokens) get the messages of a call, too.
	CountTokens bool
	// Base sends the requests. Default [http.DefaultTransport].
	Base http.RoundTripper
}

// Call is a request of a model, with its history.
type Call struct {
	Header http.Header
	// Format is the dialect of the messages; see [client.Config].
	Format string
	// Body has the members of the request, and Messages the history among them. Read only.
	Body     map[string]json.RawMessage
	Messages []json.RawMessage
}

// Report is the result of a request.
type Report struct {
	// Session has the conversation; "" if the request passed unchanged.
	Session    string
	Generation int64
	// Changed: the provider got other messages than the caller's, which saved an estimated number of tokens.
	Changed bool
	Saved   int64
	// Refused: the provider refused the call as too long, and it was sent once more.
	Refused bool
	// Alone: no worker answered in time.
	Alone bool
	// Count: the request counts tokens, and calls no model.
	Count bool
	// Took is the time that the call waited for a worker.
	Took time.Duration
}

type (
	sessionKey struct{}
	reportKey  struct{}
)

// WithSession names the conversation of requests with the context.
func WithSession(ctx context.Context, session string) context.Context {
	return context.WithValue(ctx, sessionKey{}, session)
}

// WithReport writes the report of the request with the context to r, before RoundTrip returns.
func WithReport(ctx context.Context, r *Report) context.Context {
	return context.WithValue(ctx, reportKey{}, r)
}

// session is the name of a call's conversation.
func (t *Transport) session(c *call) string {
	if s, ok := c.request.Context().Value(sessionKey{}).(string); ok {
		return s
	}
	if t.SessionOf == nil {
		return t.Session
	}
	of := Call{Header: c.request.Header, Format: string(c.format), Body: map[string]json.RawMessage{}, Messages: c.messages}
	for name, v := range c.members {
		of.Body[name] = json.RawMessage(v)
	}
	return t.SessionOf(&of)
}

// RoundTrip sends a request to its provider, with the messages of a worker's answer. Its errors are those of
// Base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := cmp.Or(t.Base, http.DefaultTransport)
	api := apiOf(r)
	if api == nil || api.counts && !t.CountTokens {
		return base.RoundTrip(r)
	}
	c, err := read(r, api)
	if err != nil {
		return nil, err
	}
	session := ""
	if c.messages != nil {
		session = t.session(c)
	}
	if session == "" {
		return c.send(base, c.body)
	}
	conversation := client.Conversation[json.RawMessage]{Fitter: t.Fitter, Session: session, Config: c.config(t.Config), DryRun: api.counts}
	began := time.Now()
	sent := conversation.Fit(r.Context(), c.messages)
	report, _ := r.Context().Value(reportKey{}).(*Report)
	report = cmp.Or(report, &Report{})
	*report = c.report(session, sent, time.Since(began))
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	switch {
	case t.Audit:
		return c.send(base, c.body)
	case api.counts:
		return c.send(base, c.with(sent))
	}
	c.narrow()
	response, err := c.send(base, c.with(sent))
	if err != nil {
		return nil, err
	}
	first := inspect(response)
	again, ok := sent.Refused(r.Context(), first.refused(), first.status)
	if !ok {
		first.watch(sent.Counter())
		return response, nil
	}
	_ = first.Close()
	*report = c.report(session, again, time.Since(began))
	report.Refused = true
	response, err = c.send(base, c.with(again))
	if err == nil {
		inspect(response).watch(again.Counter())
	}
	return response, err
}

// report describes the request that is sent.
func (c *call) report(session string, f *client.Fitted[json.RawMessage], took time.Duration) Report {
	r := Report{Session: session, Generation: f.Generation, Changed: f.Changed, Count: c.counts, Took: took, Alone: f.Budget == (client.Budget{})}
	own, sent := codec.Size(c.messages), codec.Size(f.Messages)
	rest := len(c.body) - (c.to - c.from)
	if own > sent { // the estimate gives the tokens of the bytes sent
		r.Saved = f.Budget.EstimatedInput * int64(own-sent) / int64(sent+rest)
	}
	return r
}
