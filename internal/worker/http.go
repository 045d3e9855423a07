package worker

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"compactd/internal/console"
	"compactd/internal/events"
	"compactd/internal/events/schema"
	"compactd/internal/tokens"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/service"
)

// Routes returns the routes of the monitor. They exclude pprof.
func (m *Monitor) Routes() *service.Mux {
	mux := &service.Mux{}
	for _, path := range []string{"/{$}", "/v1", "/v1/{$}"} {
		mux.Route(page, path, func(w http.ResponseWriter, r *http.Request) error {
			return service.Write(r.Context(), w, http.StatusOK, m.index())
		})
	}
	mux.Route(page, "/healthz", func(w http.ResponseWriter, r *http.Request) error {
		return service.Write(r.Context(), w, http.StatusOK, map[string]string{"status": "alive"})
	})
	mux.Route(page, "/readyz", func(w http.ResponseWriter, r *http.Request) error {
		status := http.StatusOK
		answer := m.Readiness(r.Context())
		if !answer.Ready {
			status = http.StatusServiceUnavailable
		}
		return service.Write(r.Context(), w, status, answer)
	})
	collected := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	mux.Route(page, "/metrics", func(w http.ResponseWriter, r *http.Request) error {
		m.Readiness(r.Context()) // updates lag and free space
		collected.ServeHTTP(w, r)
		return nil
	})
	mux.Route(page, "/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) error {
		return writePage(w, "application/json", schema.OpenAPI)
	})
	mux.Route(page, "/v1/schema/{name}", func(w http.ResponseWriter, q *http.Request) error {
		return writePage(w, "application/schema+json", func() ([]byte, error) { return schema.Payload(strings.TrimSuffix(q.PathValue("name"), ".json")) })
	})
	service.ServeHTTP(mux, m.service, nil)
	agents.ServeOperators(mux, m.service)
	mux.Route(http.MethodGet, "/v1/events", func(w http.ResponseWriter, r *http.Request) error {
		on := m.watched.Load()
		if on == nil {
			return service.ErrNotServed
		}
		return on.worker.hub.Signals(w, r)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { service.WriteError(w, errNoPage) })
	return mux
}

// page lists the methods of a page for browsers.
const page = "GET, HEAD"

var (
	errNoPage    = events.Refuse(events.CodeNotFound, "there is no such path", "GET / lists the paths of health, metrics and the API, GET /v1/openapi.json all requests.")
	errNoToken   = events.Refuse(events.CodeUnauthorized, "a token is required", "Send one header Authorization: Bearer TOKEN, with the token of the worker (COMPACTD_HTTP_TOKEN or --http-token-file).")
	errOtherHost = events.Refuse(events.CodeForbidden, "only this machine may ask", "Ask as 127.0.0.1 or localhost.")
	errCrossSite = events.Refuse(events.CodeForbidden, "a page of another site may not ask", "Ask with a program, or from a page of this address: no Origin but its own, and no Sec-Fetch-Site but same-origin or none.")
)

// service returns the service, or an error before the start and during the stop of the worker.
func (m *Monitor) service() (*service.Service, error) {
	on := m.watched.Load()
	if on == nil {
		return nil, service.ErrNotServed
	}
	select {
	case <-on.stopping: // its connections may be closed
		return nil, service.ErrStopping
	default:
		return on.worker.service, nil
	}
}

// index is the answer of /, with the paths of the monitor.
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

// guard refuses requests without the token. If no token is set, the Host must be a loopback name: a page
// in a local browser could otherwise reach the worker by a DNS name that resolves to loopback. It
// always refuses pages of other sites, by the headers that a browser adds itself. The page of the
// console holds no data: it needs no token, and may be linked from anywhere.
func (m *Monitor) guard(next http.Handler) http.Handler {
	files := console.New()
	g := &service.Guard{Find: tokens.Operators(m.config.Token), NoToken: errNoToken}
	g.Page = func(w http.ResponseWriter, r *http.Request) (answered bool, refused *events.ServiceError) {
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case m.config.Token == "" && !loopback(hostOf(r)):
			return false, errOtherHost
		case files.Serve(w, r):
			return true, nil
		case crossSite(r):
			return false, errCrossSite
		}
		return false, nil
	}
	return g.Before(next.ServeHTTP)
}

// crossSite reports whether a browser sent the request for a page of another site. Programs send
// neither header. https://www.w3.org/TR/fetch-metadata/
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

func writePage(w http.ResponseWriter, kind string, read func() ([]byte, error)) error {
	data, err := read()
	if err != nil {
		return errNoPage
	}
	service.WriteData(w, http.StatusOK, kind, data)
	return nil
}
