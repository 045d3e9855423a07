package agents_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/service"
)

// raw sends bytes to an edge, and returns the status lines of all answers until the connection
// ends.
func raw(e *workertest.Edge, text string) (statuses []string) {
	e.T.Helper()
	c, err := net.Dial("tcp", e.Listener.Addr())
	if err != nil {
		e.T.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(workertest.WaitLimit)); err != nil {
		e.T.Fatal(err)
	}
	if _, err := c.Write([]byte(text)); err != nil {
		e.T.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "HTTP/1.1 "); ok {
			statuses = append(statuses, rest[:3])
		}
	}
	return statuses
}

// No request without the right token of the tenant reads, publishes or follows anything, whatever
// the path looks like; and what exists elsewhere does not show.
func TestAgentsForeignTokens(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	if status, got := e.Post("secret", "turns", string(workertest.Turn(1))); status != 200 {
		t.Fatalf("%d %+v", status, got)
	}
	end := env.LogEnd()
	get, post := []string{"events", "context", "stats", "files", "history", "recall?turn=1", "outcome?seq=1"}, []string{"turns", "overflow", "compact", "rewind", "end", "check"}
	for _, c := range []struct {
		token string
		want  int
	}{{"", 401}, {"wrong", 401}, {workertest.ExpiredToken, 401}, {strings.Repeat("x", 8<<10), 401}, {workertest.TokenLine(workertest.DefaultToken, "")[:64], 401}, {workertest.AcmeToken, 403}} {
		for _, session := range []string{"secret", "none"} {
			for _, path := range get {
				if status, text := e.Do(c.token, "GET", "/v1/sessions/default/"+session+"/"+path, ""); status != c.want {
					t.Errorf("token %.10q GET %s: %d %s, want %d", c.token, path, status, text, c.want)
				}
			}
			for _, path := range post {
				if status, text := e.Do(c.token, "POST", "/v1/sessions/default/"+session+"/"+path, string(workertest.Turn(2))); status != c.want {
					t.Errorf("token %.10q POST %s: %d %s, want %d", c.token, path, status, text, c.want)
				}
			}
		}
	}
	for path, want := range map[string]int{
		"/v1/sessions?tenant=default": 403, "/v1/sessions?tenant=acme&tenant=default": 403, "/v1/sessions": 200, "/v1/health": 403, "/v1/tenants": 403, "/v1/fleet": 403,
		"/v1/sessions/acme/s1/timeline": 403, "/v1/sessions/acme/s1/xray": 403, "/v1/sessions/acme/s1/changes": 403, "/v1/sessions?tenant=*": 403, "/v1/sessions?sort=fill": 200,
		"/v1/sessions/acme/../default/secret/context": 404, "/v1/sessions/acme//secret/context": 404, "/v1/sessions//default/secret/context": 404,
		"//v1/sessions/default/secret/context": 404, "/v1/sessions/acme/./secret/context": 404, "/v1/sessions/acme%2F..%2Fdefault/secret/context": 403,
		"/v1/sessions/acme%2fsecret/context": 404, "/v1/sessions/acme/..%2Fdefault%2Fsecret/context": 200, "/v1/sessions/%64efault/secret/context": 403,
		"/v1/sessions/DEFAULT/secret/context": 403, "/v1/sessions/*/secret/context": 403, "/v1/sessions/%3E/secret/context": 403,
		"/v1/sessions/d\u0435fault/secret/context": 403, "/v1/sessions/acme%00/secret/context": 403, "/v1/sessions/acme/secret/context/": 404,
		"/v1/sessions/acme/secret/context;/": 404, "/v1/sessions/acme/%FF/context": 400, "/metrics": 404, "/healthz": 404, "/debug/pprof/": 404,
		"/v1/sessions/acme/secret/context?tenant=default&session=secret": 200, "/v1/sessions/acme/secret/nothing": 404,
	} {
		status, text := e.Do(workertest.AcmeToken, "GET", path, "")
		if status != want || strings.Contains(text, "word 1") || strings.Contains(text, `"known":true`) || strings.Contains(text, `"session":"secret"`) {
			t.Errorf("GET %s: %d %s, want %d", path, status, text, want)
		}
	}
	if status, text := e.Do(workertest.AcmeToken, "POST", "/v1/sessions/acme/s/check", `{"tenant":"default","session":"secret"}`); status != 400 {
		t.Errorf("a check that names another tenant: %d %s", status, text)
	}
	if status, text := e.Do(workertest.OperatorToken, "GET", "/v1/sessions/default/secret/stats", ""); status != 200 || !strings.Contains(text, `"known":true`) {
		t.Errorf("as an operator: %d %s", status, text)
	}
	for _, o := range service.Operations() { // docs/http.md states that operators may use all
		path := strings.NewReplacer("{tenant}", "default", "{session}", "secret").Replace(o.Path)
		absent := slices.Contains([]string{"whatif", "policy", "policies"}, o.Name) // in this worker
		status, text := e.Do(workertest.OperatorToken, o.Method, path, "")
		if status == 401 || status == 403 || status == 405 || strings.Contains(text, `"not_found"`) && !absent {
			t.Errorf("an operator's %s: %d %s", o.Name, status, text)
		}
	}
	if env.LogEnd() != end {
		t.Errorf("%d events were stored", env.LogEnd()-end)
	}
}

// Headers that two programs may read in two ways let no request through without a token of its
// own, and add no headers to what is stored.
func TestAgentsSmuggling(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	const inner = "POST /v1/sessions/acme/s/end HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
	head := "POST /v1/sessions/default/s/end HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + workertest.DefaultToken + "\r\n"
	for name, text := range map[string]string{
		"length and chunks":    head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", len(inner)+5) + inner,
		"two lengths":          head + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + inner,
		"chunked twice":        head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		"folded":               head + "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + inner,
		"space before a colon": head + "Content-Length : 0\r\n\r\n" + inner,
		"bare line feed":       strings.ReplaceAll(head, "\r\n", "\n") + "Content-Length: 0\n\n" + inner,
		"token of two":         head + "Authorization: Bearer " + workertest.AcmeToken + "\r\nContent-Length: 0\r\n\r\n" + inner,
	} {
		for i, status := range raw(e, text) {
			if i > 0 && status != "401" && status != "400" {
				t.Errorf("%s: the inner request is answered with %s", name, status)
			}
		}
	}
	for _, body := range []string{`{"id":"a\r\nNats-Rollup: all","messages":[]}`, `{"id":"a\u0000","messages":[]}`} {
		if status, got := e.Post("s", "turns", body); status != 400 {
			t.Errorf("%s: %d %+v", body, status, got)
		}
	}
	if m, err := stream.LastOf(t.Context(), env.Conn, topology.LogStream, "log.*.*.acme.*"); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("an inner request was published: %s %v", m.Subject, err)
	}
}

// Bodies that are too large are refused before they are read. Slow bodies keep neither
// other tenants from an answer, nor their own, and have memory for what came of them.
func TestAgentsBodies(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e, l := env.RunLimitedEdge(0)
	post := func(token, tenant string, length int) string {
		c, err := net.Dial("tcp", e.Listener.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "POST /v1/sessions/%s/s/turns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n{", tenant, token, length)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line[9:12]
	}
	if got := post(workertest.DefaultToken, "default", 100<<20); got != "413" {
		t.Errorf("a body of 100 MB: %s", got)
	}
	if got := post("wrong", "default", 100<<20); got != "401" {
		t.Errorf("a body of 100 MB without a token: %s", got)
	}
	for range 100 {
		if got := post(workertest.DefaultToken, "default", events.MaxTurnBytes); got != "100" {
			t.Errorf("a body of 4 MiB: %s", got)
		}
	}
	if held := l.Held(limit.Memory); held == 0 || held > 100*limit.PerByte*4<<10 {
		t.Errorf("%d bytes are held for 100 bodies that have not come", held)
	}
	for token, tenant := range map[string]string{workertest.AcmeToken: "acme", workertest.DefaultToken: "default"} {
		if status, text := e.Do(token, "POST", "/v1/sessions/"+tenant+"/other/turns", string(workertest.Turn(1))); status != 200 {
			t.Errorf("%s meanwhile: %d %s", tenant, status, text)
		}
	}
}

// A token that sends too much is refused for a while, and no other is. Pages of browsers are
// refused, but for the origins of the configuration.
func TestAgentsRateAndOrigins(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, func(c *agents.Config) { c.Rate, c.Origins = 1, []string{"https://app.example"} })
	for _, c := range []struct {
		method, origin, token string
		want                  int
	}{
		{"GET", "https://evil.example", workertest.AcmeToken, 403},
		{"GET", "null", workertest.AcmeToken, 403},
		{"OPTIONS", "https://evil.example", "", 403},
		{"GET", "http://" + e.Listener.Addr(), workertest.AcmeToken, 403},
		{"OPTIONS", "https://app.example", "", 204},
		{"GET", "https://app.example", "", 401},
		{"GET", "https://app.example", workertest.AcmeToken, 200},
		{"GET", "https://app.example.evil.example", workertest.AcmeToken, 403},
	} {
		if status, text := e.Do(c.token, c.method, "/v1/sessions", "", "Origin", c.origin); status != c.want {
			t.Errorf("%s from %s: %d %s, want %d", c.method, c.origin, status, text, c.want)
		}
	}
	refused := 0
	for range 10 {
		if status, _ := e.Do(workertest.DefaultToken, "GET", "/v1/sessions", ""); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 5 {
		t.Errorf("%d of 10 requests are refused at a rate of 1", refused)
	}
	if status, _ := e.Do(workertest.OperatorToken, "GET", "/v1/health", ""); status != 200 {
		t.Errorf("another token meanwhile: %d", status)
	}
}
