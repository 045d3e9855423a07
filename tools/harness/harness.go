package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events/partitions"
	"compactd/internal/worker"
)

// Main runs a program that measures until it is done or interrupted. measure gets the
// flag -run, which selects, and a temporary directory.
func Main(name, selects string, measure func(ctx context.Context, only *regexp.Regexp, dir string) error) {
	pattern := flag.String("run", "", "measure only "+selects)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	only, err := regexp.Compile(*pattern)
	if err == nil {
		err = withDir(name, func(dir string) error { return measure(ctx, only, dir) })
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func withDir(name string, run func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "compactd-"+name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return run(dir)
}

// Partitions of every log.
const Partitions = 8

// Limit bounds a wait that only a defect makes long.
const Limit = 2 * time.Minute

// ErrSlow reports a wait beyond [Limit].
var ErrSlow = fmt.Errorf("not done within %v", Limit)

// Server is an embedded server with the two streams.
type Server struct {
	*embedded.Server
	Conn    *nats.Conn
	JS      jetstream.JetStream
	Streams *topology.Streams

	name string
}

// Start starts a server whose streams are in dir. name is the program's.
func Start(ctx context.Context, dir, name string) (_ *Server, err error) {
	s := &Server{name: name}
	if s.Server, err = embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:-1"}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.Conn, err = s.Connect(ctx); err != nil {
		return nil, err
	}
	if s.JS, err = jetstream.New(s.Conn, jetstream.WithPublishAsyncMaxPending(8192)); err != nil {
		return nil, err
	}
	return s, s.Ensure(ctx)
}

// Ensure creates the streams that do not exist.
func (s *Server) Ensure(ctx context.Context) (err error) {
	s.Streams, err = topology.Ensure(ctx, s.JS, topology.Config{Partitions: Partitions, CreateBytes: s.StreamBytes()})
	return err
}

// Connect opens one more connection.
func (s *Server) Connect(ctx context.Context) (*nats.Conn, error) {
	return connect.Open(ctx, connect.Options{InProcess: s.Server, Name: "compactd " + s.name})
}

// Decided waits until workers have decided each partition up to the end of the log as it is now.
func (s *Server) Decided(ctx context.Context) error {
	log, err := topology.State(ctx, s.JS, topology.LogStream)
	if err != nil {
		return err
	}
	return commit.AwaitCursor(ctx, s.JS, partitions.New(Partitions), log.Last)
}

// Close stops the server.
func (s *Server) Close() {
	if s.Conn != nil {
		s.Conn.Close()
	}
	s.Stop()
}

// Worker is a worker that runs in this process.
type Worker struct {
	*worker.Worker
	conns  []*nats.Conn
	cancel context.CancelFunc
	done   chan error
}

// Serve starts a worker. Its connections, streams and owner are filled in; outcomes have
// no bound, since what a bound leaves out would not be measured.
func (s *Server) Serve(ctx context.Context, c worker.Config) (_ *Worker, err error) {
	w := &Worker{done: make(chan error, 1)}
	defer func() {
		if err != nil {
			w.closeConns()
		}
	}()
	for range 2 {
		nc, err := s.Connect(ctx)
		if err != nil {
			return nil, err
		}
		w.conns = append(w.conns, nc)
	}
	c.OutcomeBytes, c.Read, c.Commit, c.Streams = -1, w.conns[0], w.conns[1], s.Streams
	c.Owner = fmt.Sprintf("%s-%d", s.name, time.Now().UnixNano())
	if w.Worker, err = worker.New(c); err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() { w.done <- w.Run(ctx) }()
	return w, nil
}

// Await waits until there is closed, as long as the worker runs.
func (w *Worker) Await(ctx context.Context, there <-chan struct{}) error {
	select {
	case <-there:
		return nil
	case err := <-w.done:
		w.done <- err
		return fmt.Errorf("the worker stopped: %w", err)
	case <-time.After(Limit):
		return ErrSlow
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop ends the worker in good order.
func (w *Worker) Stop() error {
	w.cancel()
	err := <-w.done
	w.closeConns()
	return err
}

func (w *Worker) closeConns() {
	for _, nc := range w.conns {
		nc.Close()
	}
}

// Acked waits for acknowledgements, and returns the sequences.
func Acked(ctx context.Context, acks []jetstream.PubAckFuture) ([]uint64, error) {
	out := make([]uint64, 0, len(acks))
	for _, a := range acks {
		select {
		case ok := <-a.Ok():
			out = append(out, ok.Sequence)
		case err := <-a.Err():
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// Median of values; 0 of none.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile is the value below which the share q of all values lies; 0 of none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// Machine describes the machine, and how busy it was in the last minute.
func Machine() string {
	load := "unknown"
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(b), " ")
	}
	return fmt.Sprintf("%d CPUs, %s %s/%s, load %s", runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH, load)
}
