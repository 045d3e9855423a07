package worker_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/limit"
)

// statusOf returns the status of a request with some headers.
func statusOf(t *testing.T, m *worker.Monitor, method, path string, header http.Header) int {
	t.Helper()
	a := workertest.Send(t, m, method, path, "", header)
	if cors := a.Header.Get("Access-Control-Allow-Origin"); cors != "" {
		t.Errorf("%s %s allows %q", method, path, cors)
	}
	return a.Status
}

// A page of another site cannot query a worker through the browser of its user, also not on
// loopback, where no token is needed.
func TestForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	open, guarded := workertest.NewMonitor(t, worker.MonitorConfig{}), workertest.NewMonitor(t, worker.MonitorConfig{Token: token})
	for _, c := range []struct {
		name, value string
		want        int
	}{
		{"Origin", "https://evil.example", http.StatusForbidden},
		{"Origin", "null", http.StatusForbidden},
		{"Origin", "http://localhost:1", http.StatusForbidden},
		{"Origin", "http://" + open.Addr() + ".evil.example", http.StatusForbidden},
		{"Origin", "http://" + open.Addr(), http.StatusOK},
		{"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"Sec-Fetch-Site", "same-site", http.StatusForbidden},
		{"Sec-Fetch-Site", "same-origin", http.StatusOK},
		{"Sec-Fetch-Site", "none", http.StatusOK},
		{"X-Nothing", "1", http.StatusOK},
	} {
		h := http.Header{c.name: {c.value}}
		if got := statusOf(t, open, "GET", "/metrics", h); got != c.want {
			t.Errorf("%s: %s is %d, want %d", c.name, c.value, got, c.want)
		}
		if c.want == http.StatusForbidden {
			if got := statusOf(t, open, "OPTIONS", "/v1/sessions/a/b/check", h); got != http.StatusForbidden {
				t.Errorf("preflight with %s: %s is %d", c.name, c.value, got)
			}
			h.Set("Authorization", "Bearer "+token)
			if got := statusOf(t, guarded, "GET", "/metrics", h); got != http.StatusForbidden {
				t.Errorf("with a token, %s: %s is %d", c.name, c.value, got)
			}
		}
	}
}

// The listener of operators answers no preflight: it has no pages of other origins.
func TestNoPreflights(t *testing.T) {
	t.Parallel()
	open, guarded := workertest.NewMonitor(t, worker.MonitorConfig{}), workertest.NewMonitor(t, worker.MonitorConfig{Token: "0123456789abcdef"})
	for m, want := range map[*worker.Monitor]int{open: http.StatusMethodNotAllowed, guarded: http.StatusUnauthorized} {
		if got := statusOf(t, m, "OPTIONS", "/v1/sessions/a/b/check", http.Header{"Origin": {"http://" + m.Addr()}}); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}

// The token is taken from one place: a header Authorization with the scheme Bearer.
func TestTokenIsBearer(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	m := workertest.NewMonitor(t, worker.MonitorConfig{Token: token})
	for _, c := range []struct {
		path   string
		header []string
		want   int
	}{
		{"/metrics", []string{"Bearer " + token}, http.StatusOK},
		{"/metrics", []string{"bearer  " + token}, http.StatusOK}, // the scheme is case-insensitive
		{"/metrics", []string{token}, http.StatusUnauthorized},
		{"/metrics", []string{"Token " + token}, http.StatusUnauthorized},
		{"/metrics", []string{"Basic " + token}, http.StatusUnauthorized},
		{"/metrics", []string{"Bearer x", "Bearer " + token}, http.StatusUnauthorized},
		{"/metrics", []string{"Bearer " + token, "Bearer " + token}, http.StatusUnauthorized},
		{"/metrics?token=" + token + "&access_token=" + token, nil, http.StatusUnauthorized},
	} {
		if got := statusOf(t, m, "GET", c.path, http.Header{"Authorization": c.header}); got != c.want {
			t.Errorf("%s with %q: %d, want %d", c.path, c.header, got, c.want)
		}
	}
	if got := statusOf(t, m, "GET", "/metrics", http.Header{"Cookie": {"token=" + token}, "X-Token": {token}}); got != http.StatusUnauthorized {
		t.Errorf("as a cookie: %d", got)
	}
}

// slowBody sends a request without its body, and returns the first line of the answer: 100
// Continue when the worker waits for the body.
func slowBody(t *testing.T, m *worker.Monitor) string {
	t.Helper()
	c, err := net.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /v1/sessions/default/s/check HTTP/1.1\r\nHost: %s\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n{", m.Addr())
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// Requests whose body does not arrive block no other request, and have memory for what they announce.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "")
	for range 100 {
		if line := slowBody(t, m); line != "HTTP/1.1 100 Continue" {
			t.Errorf("a body that is read: %s", line)
		}
	}
	if held := r.Worker.Service().Limiter().Held(limit.Memory); held == 0 || held > 100*10*limit.PerByte {
		t.Errorf("%d bytes are held for 100 bodies of 10", held)
	}
	if got := statusOf(t, m, "GET", "/v1/sessions", http.Header{}); got != http.StatusOK {
		t.Errorf("with 100 bodies that do not arrive, another request: %d", got)
	}
	if status, text := workertest.Post(t, m, "/v1/sessions/default/s/check", `{"tokens":1}`); status != http.StatusOK {
		t.Errorf("with 100 bodies that do not arrive, another one: %d %s", status, text)
	}
}
