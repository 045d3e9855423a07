package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync/atomic"
	"testing"
)

// failure is a worker that is of no use.
type failure struct {
	name     string
	url      string
	requests *atomic.Int64
}

// failures starts a worker of each kind: away, one without an answer, one that refuses, and one whose answers
// are cut.
func failures(t *testing.T) []failure {
	t.Helper()
	all := []failure{{"away", "http://127.0.0.1:1", new(atomic.Int64)}} // no server has that port
	for name, answer := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"refuses": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"code":"forbidden","message":"the token is unknown"}`, http.StatusUnauthorized)
		},
		"other": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"v":1}`)) },
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4000")
			_, _ = w.Write([]byte(`{"v":1,"parts":[`))
		},
	} {
		requests := new(atomic.Int64)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			// The server sees that its client is gone only once the body was read.
			var body json.RawMessage
			_ = json.NewDecoder(r.Body).Decode(&body)
			answer(w, r)
		}))
		t.Cleanup(server.Close)
		all = append(all, failure{name, server.URL, requests})
	}
	return all
}

// lacksNode skips the test where there is no Node.
func lacksNode(t *testing.T) {
	t.Helper()
	if exec.CommandContext(t.Context(), "node", "--version").Run() == nil {
		return
	}
	if needed("typescript") {
		t.Fatal("it needs node 20 or newer")
	}
	fmt.Printf("\n** THE PACKAGE FOR JAVASCRIPT WAS NOT RUN: it needs node 20 or newer\n\n")
	t.Skip("SKIPPED: it needs node 20 or newer")
}
