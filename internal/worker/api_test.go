package worker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
)

// httpAnswer is what a monitor answers to a request over HTTP.
type httpAnswer struct {
	status int
	header http.Header
	body   string
}

// send sends a request to a monitor over HTTP.
func send(t *testing.T, m *worker.Monitor, method, path, body string) httpAnswer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+m.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return httpAnswer{status: resp.StatusCode, header: resp.Header, body: strings.TrimSuffix(string(data), "\n")}
}

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
	first := env.Monitor(m, "")
	<-first.Worker.Ready()
	second := env.Start("b", owners.Listener("b"))
	<-second.Worker.Ready()
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
	described := map[string][]int{}
	for _, op := range listeners()["openapi-agents.json"].Operations {
		described[op.Name] = append(op.Refusals, 200)
	}
	refused := 0
	for _, a := range all {
		want, err := env.Conn.Request("compactd."+a.endpoint, []byte(a.payload), workertest.WaitLimit)
		if err != nil {
			t.Fatal(err)
		}
		got := send(t, m, a.method, a.path, a.body)
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
		if got.status != status || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %v %s", a.method, a.path, got.status, got.header, got.body)
		}
		if !slices.Contains(described[a.endpoint], got.status) {
			t.Errorf("%s %s: %d is not in the OpenAPI document", a.method, a.path, got.status)
		}
		if diff := cmp.Diff(body, got.body); diff != "" {
			t.Errorf("%s %s (-NATS +HTTP):\n%s", a.method, a.path, diff)
		}
	}
	if refused < 20 {
		t.Errorf("%d requests were refused, want at least 20", refused)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
}

// A request that the service does not have is refused in the same shape, with a hint.
func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	for _, c := range []struct {
		method, path, body string
		status             int
		code               events.Code
	}{
		{"GET", "/v1/health", "", 503, events.CodeUnavailable}, // there is no worker yet
		{"GET", "/v1/nowhere", "", 404, events.CodeNotFound},
		{"GET", "/v1/sessions/default", "", 404, events.CodeNotFound},
		{"POST", "/v1/health", "{}", 405, events.CodeMethodNotAllowed},
		{"GET", "/v1/sessions/default/s/check", "", 405, events.CodeMethodNotAllowed},
		{"GET", "/v1/schema/nothing", "", 404, events.CodeNotFound},
		{"GET", "/v1/schema/..%2fturn", "", 404, events.CodeNotFound},
		{"GET", "/nowhere", "", 404, events.CodeNotFound},
		{"POST", "/nowhere", "{}", 404, events.CodeNotFound},
		{"GET", "/debug/pprof/", "", 404, events.CodeNotFound},
		{"POST", "/", "", 405, events.CodeMethodNotAllowed},
		{"DELETE", "/healthz", "", 405, events.CodeMethodNotAllowed},
		{"POST", "/readyz", "", 405, events.CodeMethodNotAllowed},
		{"PUT", "/metrics", "", 405, events.CodeMethodNotAllowed},
		{"POST", "/v1/openapi.json", "{}", 405, events.CodeMethodNotAllowed},
		{"POST", "/v1/schema/turn", "{}", 405, events.CodeMethodNotAllowed},
	} {
		got := send(t, m, c.method, c.path, c.body)
		var e events.ServiceError
		if err := codec.UnmarshalStrict([]byte(got.body), &e); err != nil {
			t.Errorf("%s %s: %s: %v", c.method, c.path, got.body, err)
		}
		if (got.status == 405) != (got.header.Get("Allow") != "") {
			t.Errorf("%s %s: %d, Allow is %q", c.method, c.path, got.status, got.header.Get("Allow"))
		}
		if got.status != c.status || e.Code != c.code || e.Message == "" || e.Hint == "" || e.V != events.Version {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
	}
	guarded := workertest.NewMonitor(t, worker.MonitorConfig{Token: strings.Repeat("t", 16)})
	for _, token := range []string{"", strings.Repeat("u", 16)} {
		if status, body := workertest.Get(t, guarded, "/v1/openapi.json", token, ""); status != 401 || !strings.Contains(body, `"code":"unauthorized"`) {
			t.Errorf("with token %q: %d %s", token, status, body)
		}
	}
	if status, _ := workertest.Get(t, guarded, "/v1/openapi.json", strings.Repeat("t", 16), "elsewhere"); status != 200 {
		t.Errorf("with its token: %d", status)
	}
	if status, body := workertest.Get(t, m, "/v1/openapi.json", "", "elsewhere"); status != 403 || !strings.Contains(body, `"code":"forbidden"`) {
		t.Errorf("under a foreign name: %d %s", status, body)
	}
}

// The index at / lists every path of the worker, and each of them exists.
func TestHTTPIndex(t *testing.T) {
	t.Parallel()
	m := workertest.NewMonitor(t, worker.MonitorConfig{Version: "v7"})
	for _, path := range []string{"/", "/v1", "/v1/"} {
		got := send(t, m, "GET", path, "")
		var index map[string]any
		if err := json.Unmarshal([]byte(got.body), &index); err != nil || got.status != 200 {
			t.Fatalf("%s: %d %s: %v", path, got.status, got.body, err)
		}
		if index["name"] != "compactd" || index["version"] != "v7" {
			t.Errorf("%s: %s", path, got.body)
		}
		for name, at := range index {
			if at, ok := at.(string); ok && strings.HasPrefix(at, "/") && send(t, m, "GET", at, "").status == 404 {
				t.Errorf("%s: %s is not there", name, at)
			}
		}
	}
}

// A body that is larger than the limit is refused, and not read to its end.
func TestHTTPLargeBody(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "")
	<-r.Worker.Ready()
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", events.MaxCheckBytes) + `"}]}`
	got := send(t, m, "POST", "/v1/sessions/default/s/check", body)
	if got.status != 413 || !strings.Contains(got.body, `"code":"too_large"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := send(t, m, "GET", "/v1/sessions/default/s/stats", ""); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("after the stop: %d %s", got.status, got.body)
	}
}
