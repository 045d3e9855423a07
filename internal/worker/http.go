package worker

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"compactd/internal/console"
	"compactd/internal/events"
	"compactd/internal/events/schema"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/query"
)

// serveHTTP answers on l until ctx ends. No client may hold a connection for long.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      query.AnswerTimeout + 5*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = s.Close() // an answer under way may be cut off: the caller requests it again
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler routes; there is no pprof.
func (m *Monitor) handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/{$}", "/v1", "/v1/{$}"} {
		m.page(mux, path, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, m.index()) })
	}
	m.page(mux, "/healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
	})
	m.page(mux, "/readyz", func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		answer := m.Readiness(r.Context())
		if !answer.Ready {
			status = http.StatusServiceUnavailable
		}
		writeJSON(w, status, answer)
	})
	collected := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	m.page(mux, "/metrics", func(w http.ResponseWriter, r *http.Request) {
		m.Readiness(r.Context()) // lag and room are as fresh as a check
		collected.ServeHTTP(w, r)
	})
	m.page(mux, "/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, "application/json", schema.OpenAPI)
	})
	m.page(mux, "/v1/schema/{name}", func(w http.ResponseWriter, q *http.Request) {
		writePage(w, "application/schema+json", func() ([]byte, error) { return schema.Payload(strings.TrimSuffix(q.PathValue("name"), ".json")) })
	})
	query.ServeHTTP(mux, m.service, nil)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { query.WriteError(w, errNoPage) })
	return limit.Drained(m.guard(mux))
}

// page answers GET and HEAD at a path, and refuses any other method.
func (m *Monitor) page(mux *http.ServeMux, path string, h http.HandlerFunc) {
	mux.HandleFunc("GET "+path, h)
	mux.HandleFunc(path, query.WrongMethod("GET, HEAD"))
}

var errNoPage = &events.ServiceError{V: events.Version, Code: events.CodeNotFound, Message: "there is no such path", Hint: "GET / lists the paths of health, metrics and the API, GET /v1/openapi.json all requests."}

// service is what answers requests, or why nothing does.
func (m *Monitor) service() (*query.Service, error) {
	on := m.watched.Load()
	if on == nil {
		return nil, query.ErrNotServed
	}
	select {
	case <-on.stopping: // its connections may be closed
		return nil, query.ErrStopping
	default:
		return on.worker.service, nil
	}
}

// index is what / answers: where everything is.
type index struct {
	V        int    `json:"v"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Health   string `json:"health"`
	Ready    string `json:"ready"`
	Metrics  string `json:"metrics"`
	Sessions string `json:"sessions"`
	OpenAPI  string `json:"openapi"` // describes all requests
}

func (m *Monitor) index() index {
	return index{
		V: events.Version, Name: events.ServiceName, Version: m.config.Version,
		Health: "/healthz", Ready: "/readyz", Metrics: "/metrics", Sessions: "/v1/sessions", OpenAPI: "/v1/openapi.json",
	}
}

// guard refuses requests without the token. Without a token only programs of this
// machine may ask, under its own name: a page in a browser here could come under a
// name of its own that leads to loopback. A page of another site is refused in any
// case: what a browser sends by itself shows where the request comes from. The page of
// the console holds no data: it needs no token, and may be linked from anywhere.
func (m *Monitor) guard(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(m.config.Token))
	refusals, page := limit.NewRefusals(), console.New()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		query.EndChunked(w, r)
		got := sha256.Sum256([]byte(query.Bearer(r)))
		var refused *events.ServiceError
		switch {
		case m.config.Token == "" && !loopback(hostOf(r)):
			refused = &events.ServiceError{V: events.Version, Code: events.CodeForbidden, Message: "only this machine may ask", Hint: "Ask as 127.0.0.1 or localhost."}
		case page.Serve(w, r):
			return
		case crossSite(r):
			refused = &events.ServiceError{V: events.Version, Code: events.CodeForbidden, Message: "a page of another site may not ask", Hint: "Ask with a program, or from a page of this address: no Origin but its own, and no Sec-Fetch-Site but same-origin or none."}
		case m.config.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 0:
			w.Header().Set("WWW-Authenticate", "Bearer")
			refused = &events.ServiceError{V: events.Version, Code: events.CodeUnauthorized, Message: "a token is required", Hint: "Send one header Authorization: Bearer TOKEN, with the token of the worker (COMPACTD_HTTP_TOKEN or --http-token-file)."}
		default:
			next.ServeHTTP(w, r)
			return
		}
		refusals.Await(r.Context(), w)
		query.WriteError(w, refused)
	})
}

// crossSite reports whether a browser sends the request for a page that is not of this
// address. Programs send neither header. https://www.w3.org/TR/fetch-metadata/
func crossSite(r *http.Request) bool {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" { // none: the user typed the address
			return true
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return strings.Trim(r.Host, "[]")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := events.Marshal(v)
	if err != nil {
		query.WriteError(w, query.Refusal(err))
		return
	}
	query.WriteData(w, status, "application/json", data)
}

func writePage(w http.ResponseWriter, kind string, read func() ([]byte, error)) {
	data, err := read()
	if err != nil {
		query.WriteError(w, errNoPage)
		return
	}
	query.WriteData(w, http.StatusOK, kind, data)
}
