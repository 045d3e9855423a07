package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/plant"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
)

// fuzzTarget is a worker on a log of one partition, in which good sessions continue beside any
// other messages.
type fuzzTarget struct {
	tb     testing.TB
	server *embedded.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	raw    *plant.Conn

	connect func() *nats.Conn // of a worker
	streams *topology.Streams
	config  *compaction.Config

	ended chan error // gets what Run returned
	stop  func() error

	applied atomic.Uint64 // sequence of the last event that was decided
	wake    chan struct{}
	turns   int // of the good sessions
	stored  int // hostile events
	refused int // by the server
}

func newFuzzTarget(tb testing.TB) *fuzzTarget {
	tb.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: tb.TempDir(), Listen: "-1"})
	if err != nil {
		tb.Fatal(err)
	}
	s := &fuzzTarget{tb: tb, server: srv, ended: make(chan error, 1), wake: make(chan struct{}, 1)}
	tb.Cleanup(srv.Stop)
	connect := func() *nats.Conn {
		nc, err := connect.Open(context.Background(), connect.Options{InProcess: srv})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(nc.Close)
		return nc
	}
	s.conn = connect()
	if s.js, err = jetstream.New(s.conn, jetstream.WithDefaultTimeout(workertest.WaitLimit)); err != nil {
		tb.Fatal(err)
	}
	streams, err := topology.Ensure(context.Background(), s.js, topology.Config{Partitions: 1, CreateBytes: 4 << 30})
	if err != nil {
		tb.Fatal(err)
	}
	config, err := compaction.NewConfig(workertest.WithoutSummaries(), measure.DefaultWindows())
	if err != nil {
		tb.Fatal(err)
	}
	s.connect, s.streams, s.config = connect, streams, config
	s.stop = s.worker(tb, "w")
	return s
}

// worker starts a worker and waits until it serves the partition.
func (s *fuzzTarget) worker(tb testing.TB, owner string) (stop func() error) {
	tb.Helper()
	wk, err := worker.New(worker.Config{
		Read: s.connect(), Commit: s.connect(), Streams: s.streams, Compaction: s.config, Owner: owner, LeaseTTL: time.Second,
		Listener: observe.Listener{
			Applied: func(e observe.Applied) {
				s.applied.Store(uint64(e.Seq))
				select {
				case s.wake <- struct{}{}:
				default:
				}
			},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	go func() { s.ended <- wk.Run(ctx) }()
	select {
	case <-wk.Ready():
	case err := <-s.ended:
		tb.Fatalf("the worker ended: %v", err)
	}
	return func() error { cancel(); return <-s.ended }
}

// goodTurn is the next one of a good session: each has fifty.
func (s *fuzzTarget) goodTurn() uint64 {
	session, n := s.turns/50, 1+s.turns%50
	s.turns++
	body := fmt.Sprintf(`{"v":1,"turn":%d,"messages":[{"role":"user","content":"go on"}]}`, n)
	ack, err := s.js.Publish(context.Background(), fmt.Sprintf("session.turn.default.good%d", session), []byte(body))
	if err != nil {
		s.tb.Fatal(err)
	}
	return ack.Sequence
}

// publishHostile stores a message, unless the server refuses it.
func (s *fuzzTarget) publishHostile(block, body string) {
	if s.raw == nil {
		var err error
		if s.raw, err = plant.Dial(s.server.ClientURL(), nil); err != nil {
			s.tb.Fatal(err)
		}
	}
	_, err := s.raw.Publish(fmt.Sprintf("session.turn.default.evil%d", s.turns%100), block, body)
	switch {
	case err == nil:
		s.stored++
	case errors.Is(err, plant.ErrDuplicate):
		s.refused++
	default: // the server has closed the connection or refused the message
		s.refused++
		s.raw.Close()
		s.raw = nil
	}
}

// wantDecided publishes a good turn and waits until it is decided.
func (s *fuzzTarget) wantDecided(t testing.TB, what string) {
	t.Helper()
	seq := s.goodTurn()
	deadline := time.NewTimer(workertest.WaitLimit)
	defer deadline.Stop()
	for s.applied.Load() < seq {
		select {
		case <-s.wake:
		case err := <-s.ended:
			t.Fatalf("after %s: the worker ended: %v", what, err)
		case <-deadline.C:
			t.Fatalf("after %s: the partition is at %d, a good turn at %d is not decided", what, s.applied.Load(), seq)
		}
	}
}

// FuzzMessages stores any message before each turn of a good session, which continues.
func FuzzMessages(f *testing.F) {
	for _, b := range plant.All() {
		f.Add(b.Text, "")
	}
	f.Add("", string(workertest.Turn(1)))
	f.Add(plant.Headers("Status", "100"), string(workertest.Turn(1)))
	s := newFuzzTarget(f)
	f.Fuzz(func(t *testing.T, block, body string) {
		if len(block)+len(body) > 1<<20 {
			t.Skip("larger than a message may be")
		}
		s.publishHostile(block, body)
		s.wantDecided(t, fmt.Sprintf("%.200q with %d bytes", block, len(body)))
	})
}

// rejected counts the rejected events, and those that were rejected twice.
func (s *fuzzTarget) rejected() (n, twice int) {
	s.tb.Helper()
	seen := map[uint64]bool{}
	err := stream.ReadStream(context.Background(), s.js, topology.OutcomesStream, "out.*.rejected.*.*", 1, 0, func(m jetstream.Msg, _ uint64) error {
		var r events.Rejected
		if err := codec.Unmarshal(m.Data(), &r); err != nil {
			return fmt.Errorf("%q: %w", m.Data(), err)
		}
		if seen[r.Seq] {
			twice++
		}
		seen[r.Seq] = true
		return nil
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	return len(seen), twice
}
