package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"compactd/client"
	"compactd/internal/gateway"
	"compactd/internal/testkit/exchanges"
)

// A gateway does what clients/conformance demands of every adapter.
func TestExchanges(t *testing.T) {
	exchanges.Run(t, "../../clients/conformance/exchanges", func(s exchanges.Setup) http.RoundTripper {
		o := s.Options
		return &throughGateway{t: t, session: o.Session, config: gateway.Config{
			Worker: named{&client.HTTP{URL: s.Worker, Token: s.Token}, o.Session}, Secret: []byte("secret"),
			Budget: time.Duration(o.WaitMS) * time.Millisecond, Model: client.Model(o.Model),
			OnProblem:   func(n client.Note) { s.OnProblem(string(n.Code)) },
			OnCompacted: func(_ string, f *client.Synced) { s.OnCompacted(f.Generation) },
		}}
	})
}

// named is a worker that gets the session of a suite in the place of the gateway's name for it.
type named struct {
	client.Worker
	session string
}

func (n named) Sync(ctx context.Context, _ string, in client.Sync) (*client.Synced, error) {
	return n.Worker.Sync(ctx, n.session, in)
}

// throughGateway sends requests to a gateway whose upstream is where they are for.
type throughGateway struct {
	t       *testing.T
	session string
	config  gateway.Config
	url     *url.URL // of the gateway, once it is there
}

func (g *throughGateway) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.url == nil {
		upstream := &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host}
		g.config.Upstreams = map[string]*url.URL{"openai": upstream, "anthropic": upstream}
		handler, err := gateway.New(g.config)
		if err != nil {
			return nil, err
		}
		server := httptest.NewServer(handler)
		g.t.Cleanup(server.Close)
		if g.url, err = url.Parse(server.URL); err != nil {
			return nil, err
		}
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = g.url.Host, g.url.Host
	if counts := strings.HasSuffix(r.URL.Path, "/count_tokens"); g.session != "" && !counts { // TestCountTokens has those
		r.Header.Set("X-Compactd-Session", g.session)
	}
	return http.DefaultTransport.RoundTrip(r)
}
