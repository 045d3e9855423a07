package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/query"
)

// MonitorConfig describes a [Monitor].
type MonitorConfig struct {
	// Listen is host:port; port -1 or 0 picks a free one, a missing host is
	// 127.0.0.1. Any host but loopback needs a Token.
	Listen string
	// Token is what a request must carry, as Authorization: Bearer. At least 16
	// characters; "" for none.
	Token string
	// Data is the directory whose disk is watched. Required.
	Data string
	// Version of the program. Default "dev".
	Version string
	// MaxLag is how old the oldest undecided event of a partition may be while the worker is
	// ready. Default 30 s; only tests set it.
	MaxLag time.Duration
}

// maxLagEvents is how many events a partition may be behind while the worker is ready.
const maxLagEvents = 10_000

// minToken is the least length of a token, in bytes.
const minToken = 16

func (c *MonitorConfig) validate() error {
	var errs []error
	host, at, err := query.ListenAt(c.Listen)
	if err != nil {
		errs = append(errs, err)
	}
	c.Listen = at
	if c.Token == "" && !loopback(host) {
		errs = append(errs, fmt.Errorf("listen on %q: others can reach it: set a token, as COMPACTD_HTTP_TOKEN or with --http-token-file, or listen on 127.0.0.1", c.Listen))
	}
	if c.Token != "" && len(c.Token) < minToken {
		errs = append(errs, fmt.Errorf("token is shorter than %d characters", minToken))
	}
	if c.Data == "" {
		errs = append(errs, errors.New("field Data is required"))
	}
	return errors.Join(errs...)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Monitor reports over HTTP how a worker is. It is there before the worker, so that
// a long start can be watched.
type Monitor struct {
	config   MonitorConfig
	listener net.Listener
	registry *prometheus.Registry
	metrics  *metrics
	watched  atomic.Pointer[watched]

	mu     sync.Mutex // guards the fields below, and is held for one check
	last   Readiness
	misses int       // checks in a row that the server did not answer in time
	found  []Problem // by the last one that it answered
}

// watched is a worker, and its commit connection.
type watched struct {
	worker   *Worker
	js       jetstream.JetStream
	ready    <-chan struct{}
	stopping <-chan struct{}
}

// NewMonitor takes the port. Requests are answered once Run runs.
func NewMonitor(c MonitorConfig) (*Monitor, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("new monitor: %w", err)
	}
	c.MaxLag = cmp.Or(c.MaxLag, 30*time.Second)
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("new monitor: %w", err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Monitor{
		config: c, listener: l, registry: reg, metrics: newMetrics(reg, cmp.Or(c.Version, "dev")),
	}, nil
}

// Addr is where the monitor listens, host:port.
func (m *Monitor) Addr() string { return m.listener.Addr().String() }

// Registerer gets what other parts of the program measure, for the same page; nil where there is
// no monitor.
func (m *Monitor) Registerer() prometheus.Registerer {
	if m == nil {
		return nil
	}
	return m.registry
}

// Listener is what the worker must report of itself ([Config].Listener).
func (m *Monitor) Listener() observe.Listener { return m.metrics.listener() }

// Watch sets the worker to report on, and the channel that is closed when that worker is to
// stop: it is ready no more then. Call it once, before the worker's Run.
func (m *Monitor) Watch(w *Worker, stopping <-chan struct{}) error {
	js, err := jetstream.New(w.config.Commit)
	if err != nil {
		return fmt.Errorf("watch worker: %w", err)
	}
	m.watched.Store(&watched{w, js, w.Ready(), stopping})
	return nil
}

// Run answers requests until ctx ends, and lets go of the port.
func (m *Monitor) Run(ctx context.Context) error {
	if err := query.Serve(ctx, m.listener, limit.Drained(m.guard(m.Routes()))); err != nil {
		return fmt.Errorf("run monitor: %w", err)
	}
	return nil
}

func partitionLabel(id int) string { return strconv.Itoa(id) }
