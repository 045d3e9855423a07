package gateway

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"compactd/client/transport"
)

// metrics are the series of a gateway; docs/gateway.md defines each. No label has a word of a
// request.
type metrics struct {
	requests    *prometheus.CounterVec
	problems    *prometheus.CounterVec
	compactions prometheus.Counter
	saved       prometheus.Counter
	again       prometheus.Counter
	took        prometheus.Histogram
}

// waits are the buckets of the time for which a call waits for a worker, in seconds.
var waits = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

func newMetrics(to prometheus.Registerer) *metrics {
	r := promauto.With(to)
	return &metrics{
		requests:    r.NewCounterVec(prometheus.CounterOpts{Name: "compactd_gateway_requests_total", Help: "Requests that were answered."}, []string{"kind", "code"}),
		problems:    r.NewCounterVec(prometheus.CounterOpts{Name: "compactd_gateway_problems_total", Help: "Calls that no worker served."}, []string{"code"}),
		compactions: r.NewCounter(prometheus.CounterOpts{Name: "compactd_gateway_generations_total", Help: "Compactions that reached a call, each counted once."}),
		saved:       r.NewCounter(prometheus.CounterOpts{Name: "compactd_gateway_saved_tokens_total", Help: "Tokens by which calls were shorter than their histories, estimated."}),
		again:       r.NewCounter(prometheus.CounterOpts{Name: "compactd_gateway_overflows_total", Help: "Calls that were refused as too long, and sent again."}),
		took:        r.NewHistogram(prometheus.HistogramOpts{Name: "compactd_gateway_wait_seconds", Help: "Time for which a call waited for a worker.", Buckets: waits}),
	}
}

// count counts a request that was answered.
func (m *metrics) count(r *transport.Report, status int) {
	kind := "passed"
	switch {
	case r.Alone:
		kind = "alone"
	case r.Changed:
		kind = "changed"
	case r.Session != "":
		kind = "whole"
	}
	m.requests.WithLabelValues(kind, strconv.Itoa(status)).Inc()
	if r.Session == "" {
		return
	}
	m.took.Observe(r.Took.Seconds())
	if isCall(r, status) {
		m.saved.Add(float64(max(r.Saved, 0))) // a call may grow
	}
	if r.Refused {
		m.again.Inc()
	}
}

// isCall reports whether a model answered: its call counts once, whatever is counted or retried before.
func isCall(r *transport.Report, status int) bool { return !r.Count && status/100 == 2 }
