package worker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
)

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
		got := workertest.Send(t, m, c.method, c.path, c.body, nil)
		var e events.ServiceError
		if err := codec.UnmarshalStrict([]byte(got.Body), &e); err != nil {
			t.Errorf("%s %s: %s: %v", c.method, c.path, got.Body, err)
		}
		if (got.Status == 405) != (got.Header.Get("Allow") != "") {
			t.Errorf("%s %s: %d, Allow is %q", c.method, c.path, got.Status, got.Header.Get("Allow"))
		}
		if got.Status != c.status || e.Code != c.code || e.Message == "" || e.Hint == "" || e.V != events.Version {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.Status, got.Body)
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
		got := workertest.Send(t, m, "GET", path, "", nil)
		var index map[string]any
		if err := json.Unmarshal([]byte(got.Body), &index); err != nil || got.Status != 200 {
			t.Fatalf("%s: %d %s: %v", path, got.Status, got.Body, err)
		}
		if index["name"] != "compactd" || index["version"] != "v7" {
			t.Errorf("%s: %s", path, got.Body)
		}
		for name, at := range index {
			if at, ok := at.(string); ok && strings.HasPrefix(at, "/") && workertest.Send(t, m, "GET", at, "", nil).Status == 404 {
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
	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", events.MaxCheckBytes) + `"}]}`
	got := workertest.Send(t, m, "POST", "/v1/sessions/default/s/check", body, nil)
	if got.Status != 413 || !strings.Contains(got.Body, `"code":"too_large"`) {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	r.Stop()
	if got := workertest.Send(t, m, "GET", "/v1/sessions/default/s/stats", "", nil); got.Status != 503 || got.Header.Get("Retry-After") == "" {
		t.Errorf("after the stop: %d %s", got.Status, got.Body)
	}
}
