package agents

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"compactd/internal/broker/retry"
	"compactd/internal/tokens"
	"compactd/internal/worker/compress"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// DefaultRate is the number of requests per second that one token may send.
const DefaultRate = 500

// Config configures an [Edge]. Fields without a default are required.
type Config struct {
	// Listen is host:port. Port -1 or 0 picks a free port; a missing host is 127.0.0.1.
	Listen string
	// Tokens is the path of the file with the hashes of the tokens.
	Tokens string
	// SigningKey is the path of a file with the key that signs tokens of sessions, the same for all workers.
	// Without it the edge neither makes nor accepts such tokens.
	SigningKey string
	// Cert and Key are paths of PEM files; "" means no TLS. They are read again after a change.
	Cert, Key string
	// Origins of browser pages that may send requests, such as https://app.example.
	// Default none.
	Origins []string
	// Rate is the number of requests per second of one token, with bursts of twice as many.
	// Default [DefaultRate].
	Rate int
	// Limiter limits requests, together with those of other listeners. Default: the one of Service.
	Limiter *limit.Limiter

	// Version of the program.
	Version string
	// Service answers requests.
	Service *service.Service
	// Hub reads outcomes; its owner runs it. Default a hub of the edge.
	Hub *Hub
	// Registerer takes the metrics. Default none.
	Registerer prometheus.Registerer
	// OnError receives errors outside of any request, such as a tokens file that cannot be read.
	// It must not block. Default none.
	OnError func(error)
}

func (c *Config) validate() error {
	var errs []error
	_, at, err := service.ListenAt(c.Listen)
	if err != nil {
		errs = append(errs, err)
	}
	c.Listen = at
	if c.Tokens == "" {
		errs = append(errs, errors.New("field Tokens is required: every agent needs a token"))
	}
	if (c.Cert == "") != (c.Key == "") {
		errs = append(errs, errors.New("a certificate and its key belong together: name both, or neither"))
	}
	if c.Rate < 0 {
		errs = append(errs, errors.New("rate must be 1 or more"))
	}
	if c.Service == nil {
		errs = append(errs, errors.New("field Service is required"))
	}
	return errors.Join(errs...)
}

const (
	answerTimeout = 30 * time.Second // of a read of the log
	reloadEvery   = 2 * time.Second
)

// Edge answers agents over HTTP.
type Edge struct {
	config     Config
	listener   net.Listener
	hub        *Hub
	compressor *compress.Compressor
	metrics    *Metrics
	limiter    *limit.Limiter
	key        []byte // nil signs nothing

	tokens    atomic.Pointer[tokens.Set]
	reloading sync.Mutex    // held while the file is read; guards the fields below
	state     fileState     // of the file when it was read
	changes   []change      // to be recorded
	changed   chan struct{} // one slot: there are changes
}

// New listens on the port, and reads tokens and certificate. Run answers requests.
func New(c Config) (*Edge, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("new edge: %w", err)
	}
	c.Rate = cmp.Or(c.Rate, DefaultRate)
	c.Limiter = cmp.Or(c.Limiter, c.Service.Limiter())
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	e := &Edge{config: c, limiter: c.Limiter, changed: make(chan struct{}, 1)}
	read, err := jetstream.New(c.Service.Answers())
	if err != nil {
		return nil, fmt.Errorf("new edge: %w", err)
	}
	e.compressor = compress.New(read, c.Service, c.OnError)
	if e.hub = c.Hub; e.hub == nil {
		e.hub = NewHub(read, c.Limiter)
	}
	if err := e.reload(true); err != nil {
		return nil, fmt.Errorf("new edge: %w", err)
	}
	if c.SigningKey != "" {
		if e.key, err = tokens.ReadKey(c.SigningKey); err != nil {
			return nil, fmt.Errorf("new edge: %w", err)
		}
	}
	var secure *tls.Config
	if c.Cert != "" {
		if secure, err = newTLS(c.Cert, c.Key, c.OnError); err != nil {
			return nil, fmt.Errorf("new edge: %w", err)
		}
	}
	if e.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return nil, fmt.Errorf("new edge: %w", err)
	}
	e.metrics = NewMetrics(c.Registerer, func() int64 { return c.Limiter.Held(limit.Streams) })
	if secure != nil {
		e.listener = tls.NewListener(e.listener, secure)
	}
	return e, nil
}

// Addr returns the address of the edge, host:port.
func (e *Edge) Addr() string { return e.listener.Addr().String() }

// Reload reads the tokens again, even if the file seems unchanged. After an error the earlier tokens
// stay in force.
func (e *Edge) Reload() error { return e.reload(true) }

// Run answers requests until ctx ends. Then it ends all connections with events, waits a second for
// running requests, and closes the port.
func (e *Edge) Run(ctx context.Context) error {
	var work sync.WaitGroup
	work.Go(func() { e.watchTokens(ctx) })
	work.Go(func() { e.recordChanges(ctx) })
	if e.config.Hub == nil {
		work.Go(func() { e.hub.Run(ctx) })
	}
	defer work.Wait()
	defer e.hub.cutAgents()
	if err := service.Serve(ctx, e.listener, limit.Drained(e.metrics.count(e.guard(routed(e.Routes()))))); err != nil {
		return fmt.Errorf("run edge: %w", err)
	}
	return nil
}

// watchTokens reads the tokens again when their file changes. It reports an error once.
func (e *Edge) watchTokens(ctx context.Context) {
	reported := ""
	retry.Tick(ctx, reloadEvery, func() {
		err := e.reload(false)
		text := fmt.Sprint(err)
		if err != nil && text != reported {
			e.config.OnError(err)
		}
		reported = text
	})
}
