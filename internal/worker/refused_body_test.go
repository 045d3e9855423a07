package worker_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/agents"
)

// A client that sends its whole body of some MB before it reads gets the answer, whatever
// refuses it, and whatever of the body was read.
func TestRefusedWithBody(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	r, e := env.RunEdge()
	slow := env.StartEdge(r.Worker, func(c *agents.Config) { c.Rate = 1 })
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine(workertest.SessionToken, "default/s session"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	open, guarded := workertest.NewMonitor(t, worker.MonitorConfig{}), workertest.NewMonitor(t, worker.MonitorConfig{Token: strings.Repeat("t", 32)})
	const path = "/v1/sessions/default/s"
	for _, c := range []struct {
		at, token, method, path, header string
		status                          int
	}{
		{e.Listener.Addr(), "nobody", "POST", path + "/sync", "", http.StatusUnauthorized},
		{e.Listener.Addr(), workertest.SessionToken, "POST", path + "/sync", "", http.StatusForbidden},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", "/v1/sessions/acme/s/sync", "", http.StatusForbidden},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", path + "/forget", "", http.StatusForbidden},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", path + "/sync", "Origin: https://page.example", http.StatusForbidden},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", "/mcp/default/s", "", http.StatusForbidden},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", "/v1/nowhere", "", http.StatusNotFound},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", "/v1/a//b", "", http.StatusNotFound},
		{e.Listener.Addr(), workertest.DefaultToken, "GET", path + "/context", "", http.StatusOK},
		{e.Listener.Addr(), workertest.DefaultToken, "PUT", path + "/sync", "", http.StatusMethodNotAllowed},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", path + "/turns", "", http.StatusRequestEntityTooLarge},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", path + "/rewind", "", http.StatusRequestEntityTooLarge},
		{e.Listener.Addr(), workertest.SessionToken, "POST", "/mcp/default/s", "", http.StatusRequestEntityTooLarge},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", path + "/turns?wait_ms=x", "", http.StatusBadRequest},
		{e.Listener.Addr(), workertest.DefaultToken, "POST", path + "/turns", "Content-Encoding: gzip", http.StatusUnsupportedMediaType},
		{slow.Listener.Addr(), workertest.DefaultToken, "POST", path + "/sync", "", http.StatusTooManyRequests},
		{open.Addr(), "", "POST", "/nowhere", "", http.StatusNotFound},
		{open.Addr(), "", "POST", "/healthz", "", http.StatusMethodNotAllowed},
		{open.Addr(), "", "POST", "/healthz", "Sec-Fetch-Site: cross-site", http.StatusForbidden},
		{guarded.Addr(), "other", "POST", "/healthz", "", http.StatusUnauthorized},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %s %s %s %t", c.status, c.method, c.path, c.header, chunked), func(t *testing.T) {
				head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n", c.method, c.path, c.at, c.token)
				if c.header != "" {
					head += c.header + "\r\n"
				}
				if c.at == slow.Listener.Addr() {
					for status := 0; status != c.status; { // until it has sent as much as it may
						status, _ = slow.Do(c.token, "GET", path+"/stats", "")
					}
				}
				status, err := sendsFirst(t, c.at, head, chunked)
				if err != nil || status != c.status {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
}

var largeBody = bytes.Repeat([]byte{'x'}, 8<<20)

// sendsFirst sends a request with a large body, then reads its status.
func sendsFirst(t *testing.T, at, head string, chunked bool) (status int, err error) {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(workertest.WaitLimit))
	sent := net.Buffers{[]byte(head), fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(largeBody)), largeBody}
	if chunked {
		sent = net.Buffers{[]byte(head), fmt.Appendf(nil, "Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(largeBody)), largeBody, []byte("\r\n0\r\n\r\n")}
	}
	if _, err := sent.WriteTo(c); err != nil {
		return 0, fmt.Errorf("the body is not sent: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
