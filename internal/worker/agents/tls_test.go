package agents_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"compactd/internal/testkit/certs"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/observe"
)

// Over TLS a turn is taken and its events arrive; the certificate is read again when it
// changes, and a client without TLS, or that trusts another authority, is refused.
func TestAgentsTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trusted := func(name string) *http.Client {
		t.Helper()
		ca, err := certs.NewAuthority(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := ca.Issue("server"); err != nil {
			t.Fatal(err)
		}
		pem, err := os.ReadFile(filepath.Join(dir, name+".pem"))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	}
	env := workertest.New(t, t.TempDir())
	r := env.StartReady("a", observe.Listener{})
	client := trusted("ca-1")
	e := env.StartEdge(r.Worker, func(c *agents.Config) {
		c.Cert, c.Key = filepath.Join(dir, "server.pem"), filepath.Join(dir, "server-key.pem")
	})
	do := func(c *http.Client, method, path, body string) (*http.Response, error) {
		q, err := http.NewRequestWithContext(t.Context(), method, "https://"+e.Listener.Addr()+"/v1/sessions/default/s1/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+workertest.DefaultToken)
		return c.Do(q)
	}
	stream, err := do(client, http.MethodGet, "events", "")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	for n := 1; n <= 12; n++ {
		resp, err := do(client, http.MethodPost, "turns", string(workertest.Turn(n)))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK || resp.TLS == nil || resp.TLS.Version < tls.VersionTLS12 {
			t.Fatalf("turn %d: %s", n, resp.Status)
		}
	}
	for lines := bufio.NewReader(stream.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "event: compacted") {
			break
		}
	}
	if status := raw(e, "GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+workertest.DefaultToken+"\r\n\r\n"); len(status) > 0 && status[0] != "400" {
		t.Errorf("without TLS: %v", status)
	}
	renewed := trusted("ca-2")
	workertest.Until(t, "an answer with the certificate that was renewed", func() bool {
		resp, err := do(renewed, http.MethodGet, "stats", "")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	if resp, err := do(client, http.MethodGet, "stats", ""); err == nil {
		resp.Body.Close()
		t.Error("a client that trusts another authority is connected")
	}
}

// A stream ends when its token expires.
func TestAgentsStreamTokenExpires(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent "+time.Now().Add(3*time.Second).UTC().Format(time.RFC3339)))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	events, stop := e.Follow("s1", "")
	defer stop()
	deadline := time.After(workertest.WaitLimit)
	for open := true; open; {
		select {
		case _, open = <-events:
		case <-deadline:
			t.Fatal("the stream is open with a token that has expired")
		}
	}
	if status, text := e.Do(workertest.DefaultToken, "GET", "/v1/sessions/default/s1/stats", ""); status != 401 {
		t.Errorf("the token that has expired: %d %s", status, text)
	}
}

// Requests are counted by route and result, connections that receive events as long as they
// are open.
func TestAgentsMetrics(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	r := env.StartReady("a", observe.Listener{})
	reg := prometheus.NewRegistry()
	e := env.StartEdge(r.Worker, func(c *agents.Config) { c.Registerer = reg })
	e.Post("s1", "turns", string(workertest.Turn(1)))
	e.Post("s1", "turns", `{"turn":1,"messages":[{"role":"user","content":"other"}]}`)
	for _, c := range []struct{ token, path string }{
		{workertest.DefaultToken, "/v1/sessions/default/s1/context"},
		{"wrong", "/v1/sessions/default/s1/context"},
		{"", "/v1/sessions"},
		{workertest.AcmeToken, "/v1/sessions/default/s1/stats"},
		{workertest.DefaultToken, "/v1/sessions/default/s1/secret"},
		{workertest.DefaultToken, "/mcp/default/s1"},
	} {
		e.Do(c.token, "GET", c.path, "")
	}
	events, stop := e.Follow("s1", "0")
	<-events
	want := `
# HELP compactd_agents_event_streams Connections that receive events.
# TYPE compactd_agents_event_streams gauge
compactd_agents_event_streams 1
# HELP compactd_agents_refused_tokens_total Requests without a token that is in force.
# TYPE compactd_agents_refused_tokens_total counter
compactd_agents_refused_tokens_total 2
# HELP compactd_agents_requests_total Requests of agents.
# TYPE compactd_agents_requests_total counter
`
	for _, line := range []string{
		`result="answered",route="context"} 1`, `result="answered",route="events"} 1`, `result="answered",route="turns"} 1`,
		`result="refused",route="other"} 4`, `result="refused",route="stats"} 1`, `result="refused",route="turns"} 1`,
	} {
		want += fmt.Sprintf("compactd_agents_requests_total{%s\n", line)
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	stop()
}
