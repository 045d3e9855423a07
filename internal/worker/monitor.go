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
	"compactd/internal/worker/service"
)

// MonitorConfig configures a [Monitor].
type MonitorConfig struct {
	// Listen is host:port. Port -1 or 0 picks a free port; a missing host is
	// 127.0.0.1. Any host except loopback needs a Token.
	Listen string
	// Token is required of each request, as Authorization: Bearer. At least 16
	// characters; "" requires none.
	Token string
	// Data is the directory whose disk is watched. Required.
	Data string
	// Version of the program. Default "dev".
	Version string
	// MaxLag is the maximum age of the oldest undecided event of a partition for a ready worker.
	// Default 30 s; only tests set it.
	MaxLag time.Duration
}

// maxLagEvents is the maximum backlog of a partition for a ready worker.
const maxLagEvents = 10_000

// minToken is the minimum length of a token, in bytes.
const minToken = 16

func (c *MonitorConfig) validate() error {
	var errs []error
	host, at, err := service.ListenAt(c.Listen)
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

// Monitor reports the state of a worker over HTTP. It exists before the worker, so that
// a long start can be observed.
type Monitor struct {
	config   MonitorConfig
	listener net.Listener
	registry *prometheus.Registry
	metrics  *metrics
	watched  atomic.Pointer[watched]

	mu     sync.Mutex // guards the fields below; held during a check
	last   Readiness
	misses int       // checks in a row without an answer of the server in time
	found  []Problem // of the last answered check
}

// watched is a worker and its commit connection.
type watched struct {
	worker   *Worker
	js       jetstream.JetStream
	ready    <-chan struct{}
	stopping <-chan struct{}
}

// NewMonitor listens on the port. Run answers requests.
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

// Addr returns the address of the monitor, host:port.
func (m *Monitor) Addr() string { return m.listener.Addr().String() }

// Registerer takes the metrics of other parts of the program for the same page. It is nil without a
// monitor.
func (m *Monitor) Registerer() prometheus.Registerer {
	if m == nil {
		return nil
	}
	return m.registry
}

// Listener returns the listener for [Config].Listener of the worker.
func (m *Monitor) Listener() observe.Listener { return m.metrics.listener() }

// Watch sets the worker to report on. stopping is closed when the worker is to stop: it is then no
// longer ready. Call Watch once, before the worker's Run.
func (m *Monitor) Watch(w *Worker, stopping <-chan struct{}) error {
	js, err := jetstream.New(w.config.Commit)
	if err != nil {
		return fmt.Errorf("watch worker: %w", err)
	}
	m.watched.Store(&watched{w, js, w.Ready(), stopping})
	return nil
}

// Run answers requests until ctx ends, and then closes the port.
func (m *Monitor) Run(ctx context.Context) error {
	if err := service.Serve(ctx, m.listener, limit.Drained(m.guard(m.Routes()))); err != nil {
		return fmt.Errorf("run monitor: %w", err)
	}
	return nil
}

func partitionLabel(id int) string { return strconv.Itoa(id) }
