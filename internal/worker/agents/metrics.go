package agents

import (
	"net/http"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics holds the series of the edge; docs/operations.md defines each. No label has a tenant, a
// session or a token.
type Metrics struct {
	requests *prometheus.CounterVec
	refused  prometheus.Counter // tokens
}

// NewMetrics registers the series; nil registers none.
func NewMetrics(reg prometheus.Registerer, streams func() int64) *Metrics {
	if reg != nil {
		reg = prometheus.WrapRegistererWithPrefix("compactd_agents_", reg)
	}
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "event_streams", Help: "Connections that receive events."}, func() float64 { return float64(streams()) })
	return &Metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "Requests of agents."}, []string{"route", "result"}),
		refused:  f.NewCounter(prometheus.CounterOpts{Name: "refused_tokens_total", Help: "Requests without a token that is in force."}),
	}
}

// otherRoute is the route of requests that were refused before they were routed.
const otherRoute = "other"

// counted writes an answer, and counts its request first.
type counted struct {
	http.ResponseWriter
	metrics *Metrics
	request *http.Request // the routed request; nil if refused before
	done    bool
}

// WriteHeader counts the request by its first status.
func (c *counted) WriteHeader(status int) {
	c.count(status)
	c.ResponseWriter.WriteHeader(status)
}

// Write counts the request with the status 200 if there is no status yet.
func (c *counted) Write(p []byte) (int, error) {
	c.count(http.StatusOK)
	return c.ResponseWriter.Write(p) //nolint:wrapcheck // as of any writer
}

func (c *counted) count(status int) {
	if c.done {
		return
	}
	c.done = true
	route := otherRoute
	if c.request != nil {
		route = routeOf(c.request.Pattern)
	}
	c.metrics.requests.WithLabelValues(route, resultOf(status)).Inc()
	if status == http.StatusUnauthorized {
		c.metrics.refused.Inc()
	}
}

// Unwrap lets http.ResponseController set deadlines and hijack the connection.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// count counts the requests that next answers.
func (m *Metrics) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &counted{ResponseWriter: w, metrics: m}
		next.ServeHTTP(c, r)
		c.count(http.StatusOK) // without a body
	})
}

// routed records the route of a request.
func routed(mux http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := w.(*counted); ok {
			c.request = r
		}
		mux.ServeHTTP(w, r)
	})
}

// routeOf returns the last fixed word of a pattern.
func routeOf(pattern string) string {
	switch {
	case strings.HasPrefix(pattern, mcpPath):
		return "mcp"
	case pattern == "/" || pattern == "":
		return otherRoute
	}
	if strings.HasSuffix(pattern, "}") {
		pattern = path.Dir(pattern)
	}
	return strings.TrimSuffix(path.Base(pattern), ".json")
}

// resultOf returns the class of a status. A hijacked connection has no status.
func resultOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "limited"
	case status >= http.StatusInternalServerError:
		return "failed"
	case status >= http.StatusBadRequest:
		return "refused"
	}
	return "answered"
}
