package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"compactd/client"
	"compactd/internal/gateway"
)

// dripping is a connection whose body comes a few bytes at a time.
type dripping struct {
	*httptest.ResponseRecorder
	left, each int
	deadline   time.Time
}

func (d *dripping) SetReadDeadline(t time.Time) error { d.deadline = t; return nil }
func (d *dripping) Close() error                      { return nil }

func (d *dripping) Read(p []byte) (int, error) {
	if time.Sleep(time.Second / 8); !d.deadline.IsZero() && time.Now().After(d.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(p[:min(len(p), d.left)], bytes.Repeat([]byte{' '}, d.each))
	if d.left -= n; d.left == 0 {
		return n, io.EOF
	}
	return n, nil
}

// upstream reads a whole request, some time after its begin, before it answers.
type upstream time.Duration

func (u upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(u))
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// A request that drips is refused, of a call and of any other; a slow upload, and a slow provider, are not.
func TestSlowRequests(t *testing.T) {
	for name, c := range map[string]struct {
		path          string
		length, each  int
		provider      time.Duration
		status, least int // the least in seconds
	}{
		"a call":          {path: "/v1/chat/completions", length: 1000, each: 1, status: http.StatusRequestTimeout},
		"a compaction":    {path: "/v1/responses/compact", length: 1000, each: 1, status: http.StatusRequestTimeout},
		"a file":          {path: "/v1/files", length: 1000, each: 1, status: http.StatusRequestTimeout},
		"a slow file":     {path: "/v1/files", length: 8 << 20, each: 8 << 10, status: http.StatusOK, least: 100},
		"a slow provider": {path: "/v1/files", length: 4, each: 1, provider: time.Hour, status: http.StatusOK, least: 3600},
		"no body":         {path: "/v1/models", provider: time.Hour, status: http.StatusOK, least: 3600},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := gateway.New(gateway.Config{
					Upstreams: map[string]*url.URL{"openai": {Scheme: "http", Host: "provider"}}, Secret: []byte("secret"),
					Worker: &client.HTTP{URL: "http://worker"}, Base: upstream(c.provider),
				})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				d := &dripping{ResponseRecorder: httptest.NewRecorder(), left: c.length, each: c.each, deadline: began.Add(time.Minute)}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, d)
				if r.ContentLength = -1; c.length == 0 {
					r.Body, r.ContentLength = http.NoBody, 0
				}
				g.ServeHTTP(d, r)
				if took := time.Since(began); d.Code != c.status || took < time.Duration(c.least)*time.Second || c.status != http.StatusOK && took > 20*time.Second {
					t.Errorf("status %d after %v: %s", d.Code, took, d.Body)
				}
				if c.status == http.StatusOK && !d.deadline.IsZero() {
					t.Error("a deadline would end the answer")
				}
			})
		})
	}
}
