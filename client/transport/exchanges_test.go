package transport_test

import (
	"net/http"
	"testing"
	"time"

	"compactd/client"
	"compactd/client/transport"
	"compactd/internal/testkit/exchanges"
)

// The transport does what clients/conformance demands of every adapter.
func TestExchanges(t *testing.T) {
	exchanges.Run(t, "../../clients/conformance/exchanges", func(s exchanges.Setup) http.RoundTripper {
		o := s.Options
		fitter := client.NewFitter(client.FitterConfig{
			Worker: &client.HTTP{URL: s.Worker, Token: s.Token}, Wait: time.Duration(o.WaitMS) * time.Millisecond,
			OnProblem:   func(n client.Note) { s.OnProblem(string(n.Code)) },
			OnCompacted: func(_ string, f *client.Synced) { s.OnCompacted(f.Generation) },
		})
		return &transport.Transport{Fitter: fitter, Session: o.Session, Config: client.Config{Model: client.Model(o.Model)}}
	})
}
