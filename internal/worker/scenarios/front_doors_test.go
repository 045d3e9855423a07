package scenarios_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/agents"
)

// request is one request, as it is sent over NATS and over HTTP.
type request struct {
	endpoint, payload  string
	method, path, body string
}

func getRequest(endpoint, payload, path string) request {
	return request{endpoint: endpoint, payload: payload, method: "GET", path: path, body: ""}
}

// Every request has the same answer over NATS and over HTTP, and from any worker. So has a
// refusal, whose code sets the status.
func TestHTTPAnswersAsNATS(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	env.Run("b", owners.Listener("b"))
	owners.Await(map[string]int{"b": 2})
	const system = `"system":"be brief","tools":[{"name":"f"}],`
	for i := range 6 { // in partitions of either worker
		for n := 1; n <= 8; n++ {
			env.Publish(events.KindTurn, fmt.Sprintf("s%d", i), []byte(strings.Replace(string(workertest.Turn(n)), `"messages"`, system+`"messages"`, 1)))
		}
	}
	env.AwaitDecided()
	var all []request
	for i := range 6 {
		s, at := fmt.Sprintf(`{"session":"s%d"`, i), fmt.Sprintf("/v1/sessions/default/s%d", i)
		check := `"messages":[{"role":"user","content":"é"}],"tokens":5`
		all = append(all,
			getRequest("context", s+`}`, at+"/context"),
			getRequest("context", s+`,"generation":0,"page":1}`, at+"/context?generation=0&page=1"),
			getRequest("context", s+`,"generation":99}`, at+"/context?generation=99"),
			getRequest("stats", s+`,"provider":"openai","model":"gpt-4"}`, at+"/stats?provider=openai&model=gpt-4"),
			getRequest("files", s+`}`, at+"/files"),
			getRequest("recall", s+`,"turn":3,"index":1}`, at+"/recall?turn=3&index=1"),
			getRequest("recall", s+`,"turn":99}`, at+"/recall?turn=99"),
			getRequest("recall", s+`,"text":"word 7","limit":2,"before":{"turn":7,"index":1}}`, at+"/recall?text="+url.QueryEscape("word 7")+"&limit=2&before=7.1"),
			request{endpoint: "check", payload: s + "," + check + `}`, method: "POST", path: at + "/check", body: "{" + check + "}"},
			request{endpoint: "check", payload: s + `}`, method: "POST", path: at + "/check", body: ""},
		)
	}
	all = append(all,
		getRequest("sessions", `{"limit":3,"after":"2."}`, "/v1/sessions?limit=3&after=2."),
		getRequest("sessions", `{"tenant":"other"}`, "/v1/sessions?tenant=other"),
		getRequest("sessions", `{"limit":"many"}`, "/v1/sessions?limit=many"),
		getRequest("sessions", `{"limit":"007"}`, "/v1/sessions?limit=007"),
		getRequest("stats", `{"tenant":"a.b","session":"s"}`, "/v1/sessions/a.b/s/stats"),
		getRequest("recall", `{"session":"s0","text":"12","turn":1}`, "/v1/sessions/default/s0/recall?text=12&turn=1"),
		getRequest("recall", `{"session":"s0","text":"12","before":"now"}`, "/v1/sessions/default/s0/recall?text=12&before=now"),
		getRequest("context", `{"session":"s0","page":1,"page":2}`, "/v1/sessions/default/s0/context?page=1&page=2"),
		request{endpoint: "check", payload: `{"session":"s0","session":"s1"}`, method: "POST", path: "/v1/sessions/default/s0/check", body: `{"session":"s1"}`},
		request{endpoint: "check", payload: `[]`, method: "POST", path: "/v1/sessions/default/s0/check", body: `[]`},
		request{endpoint: "check", payload: `{"session":"s0","format":"anthropic"}`, method: "POST", path: "/v1/sessions/default/s0/check", body: `{"format":"anthropic"}`},
	)
	statuses := map[string]int{"unknown_turn": 404, "unknown_generation": 404, "format_changed": 409}
	var document struct {
		Paths map[string]map[string]struct {
			ID        string         `json:"operationId"`
			Responses map[string]any `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(workertest.Send(t, m, "GET", "/v1/openapi.json", "", nil).Body), &document); err != nil {
		t.Fatal(err)
	}
	described := map[string]map[string]any{}
	for _, operations := range document.Paths {
		for _, o := range operations {
			described[o.ID] = o.Responses
		}
	}
	refused := 0
	for _, a := range all {
		want, err := env.Conn.Request("compactd."+a.endpoint, []byte(a.payload), workertest.WaitLimit)
		if err != nil {
			t.Fatal(err)
		}
		got := workertest.Send(t, m, a.method, a.path, a.body, nil)
		body := string(want.Data)
		status := 200
		if code := want.Header.Get(micro.ErrorCodeHeader); code != "" {
			refused++
			if status = statuses[code]; status == 0 {
				status = 400
			}
			if a.body != "" { // over HTTP its text has body for payload
				body = strings.Replace(body, "the payload is", "the body is", 1)
			}
		}
		if got.Status != status || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %v %s", a.method, a.path, got.Status, got.Header, got.Body)
		}
		if described[a.endpoint][fmt.Sprint(got.Status)] == nil {
			t.Errorf("%s %s: %d is not in the OpenAPI document", a.method, a.path, got.Status)
		}
		if diff := cmp.Diff(body, strings.TrimSuffix(got.Body, "\n")); diff != "" {
			t.Errorf("%s %s (-NATS +HTTP):\n%s", a.method, a.path, diff)
		}
	}
	if refused < 20 {
		t.Errorf("%d requests were refused, want at least 20", refused)
	}
}

// A client that sends its whole body of some MB before it reads gets the answer, whatever
// refuses it, and whatever of the body was read.
func TestRefusedWithBody(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	slow := env.StartEdge(e.Running.Worker, func(c *agents.Config) { c.Rate = 1 })
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
