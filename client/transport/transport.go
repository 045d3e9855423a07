package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"compactd/client"
)

// Transport is an [http.RoundTripper] that fits the histories of requests into windows.
type Transport struct {
	// Fitter is required.
	Fitter *client.Fitter
	// Session names the conversation of requests whose context names none; see [WithSession].
	// Without both a request passes unchanged.
	Session string
	// Config has what the requests do not contain, such as the window of the model. A zero field is
	// read from the request.
	Config client.Config
	// Base sends the requests. Default [http.DefaultTransport].
	Base http.RoundTripper
}

type sessionKey struct{}

// WithSession names the conversation of the requests that are made with the context.
func WithSession(ctx context.Context, session string) context.Context {
	return context.WithValue(ctx, sessionKey{}, session)
}

func (t *Transport) session(ctx context.Context) string {
	if s, ok := ctx.Value(sessionKey{}).(string); ok {
		return s
	}
	return t.Session
}

// RoundTrip sends a request to its provider, with the messages that a worker answered. Its errors
// are those of Base.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := cmp.Or(t.Base, http.DefaultTransport)
	session, api := t.session(r.Context()), apiOf(r)
	if session == "" || api == nil {
		return base.RoundTrip(r)
	}
	c, err := read(r, api)
	if err != nil {
		return nil, err
	}
	if c.messages == nil {
		return c.send(base, c.body)
	}
	conversation := client.Conversation[json.RawMessage]{Fitter: t.Fitter, Session: session, Config: c.config(t.Config)}
	sent := conversation.Fit(r.Context(), c.messages)
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	response, err := c.send(base, c.with(sent))
	if err != nil {
		return nil, err
	}
	first := inspect(response)
	again, ok := sent.Refused(r.Context(), first.refused(), first.status)
	if !ok {
		first.watch(sent.Used)
		return response, nil
	}
	_ = first.Close()
	response, err = c.send(base, c.with(again))
	if err == nil {
		inspect(response).watch(again.Used)
	}
	return response, err
}
