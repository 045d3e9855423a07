package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"compactd/client"
)

// A name of dots is one part of the path too.
func TestNamesOfDots(t *testing.T) {
	var paths []string
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.RequestURI)
		_, _ = io.WriteString(w, `{"v":1,"seq":1,"decided":true,"accepted":true}`)
	}))
	defer worker.Close()
	h := &client.HTTP{URL: worker.URL}
	var want []string
	for name, sent := range map[string]string{".": "%2E", "..": "%2E%2E", "a.b/c": "a.b%2Fc", "...": "..."} {
		if err := h.Compact(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want = append(want, "/v1/sessions/default/"+sent+"/compact?wait_ms=8000")
	}
	if !slices.Equal(paths, want) {
		t.Errorf("%q, want %q", paths, want)
	}
}

// A token goes to a worker itself, past a proxy of the environment that would read it. Programs read that once, so this
// test runs another one, with a proxy that does not run; a proxy serves no loopback address.
func TestPastProxies(t *testing.T) {
	const proxy = "http://127.0.0.1:9"
	if os.Getenv("HTTP_PROXY") != proxy {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPastProxies$")
		again.Env = append(os.Environ(), "HTTP_PROXY="+proxy)
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"v":1,"seq":1,"decided":true,"accepted":true}`)
	}))
	defer worker.Close()
	h := &client.HTTP{URL: strings.Replace(worker.URL, "127.0.0.1", "0.0.0.0", 1), Token: "secret"}
	if err := h.Compact(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}
