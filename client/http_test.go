package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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
