package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"compactd/internal/console"
)

// request answers a request, and reports whether it was one for the page.
func request(t *testing.T, page *console.Page, method, path string, headers ...string) (*http.Response, bool) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	served := page.Serve(w, r)
	return w.Result(), served
}

// A browser gets the page and its files, under a policy that lets it run and load nothing else.
// Any other request is left to others.
func TestServe(t *testing.T) {
	page := console.New()
	for _, c := range []struct {
		method, path, accept, kind string
	}{
		{"GET", "/", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"},
		{"HEAD", "/", "text/html", "text/html; charset=utf-8"},
		{"GET", "/app.js", "*/*", "text/javascript; charset=utf-8"},
		{"GET", "/app.css", "*/*", "text/css; charset=utf-8"},
		{"GET", "/", "*/*", ""},
		{"GET", "/", "", ""},
		{"POST", "/", "text/html", ""},
		{"GET", "/index.html/", "text/html", ""},
		{"GET", "/v1/sessions", "text/html", ""},
		{"GET", "/../console.go", "text/html", ""},
	} {
		got, served := request(t, page, c.method, c.path, "Accept", c.accept)
		if served != (c.kind != "") || got.Header.Get("Content-Type") != c.kind {
			t.Errorf("%s %s of %q: %t %v", c.method, c.path, c.accept, served, got.Header)
		}
		if !served {
			continue
		}
		for name, part := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-cache", "Vary": "Accept",
		} {
			if !strings.Contains(got.Header.Get(name), part) {
				t.Errorf("%s %s: %s is %q", c.method, c.path, name, got.Header.Get(name))
			}
		}
	}
}

// A browser that has a file gets it no second time, and one that takes gzip gets the same bytes in fewer.
func TestServeAgain(t *testing.T) {
	page := console.New()
	plain, _ := request(t, page, "GET", "/app.js")
	want, err := io.ReadAll(plain.Body)
	if err != nil || len(want) == 0 {
		t.Fatalf("%d bytes, %v", len(want), err)
	}
	zipped, _ := request(t, page, "GET", "/app.js", "Accept-Encoding", "gzip, br")
	if zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("ETag") == plain.Header.Get("ETag") {
		t.Errorf("with gzip: %v", zipped.Header)
	}
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != string(want) {
		t.Errorf("unzipped %d bytes of %d, %v", len(got), len(want), err)
	}
	for _, of := range []*http.Response{plain, zipped} {
		encoding := of.Header.Get("Content-Encoding")
		again, _ := request(t, page, "GET", "/app.js", "Accept-Encoding", encoding, "If-None-Match", of.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%q again: %d", encoding, again.StatusCode)
		}
	}
}
