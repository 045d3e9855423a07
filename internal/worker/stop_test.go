package worker_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/partition"
)

// A stop ends within the drain timeout, whether the broker is gone or frozen: all partitions share
// one deadline, and no lease is renewed meanwhile. Outcomes wait for a commit in every partition,
// so each of them waits for the deadline.
func TestStopWithoutBroker(t *testing.T) {
	withoutBroker(t, 8, func(t *testing.T, env *workertest.Env, read, commit *cable, dir string, lose func(*cable)) {
		var (
			mu       sync.Mutex // guards the fields below
			stopping bool
			late     []observe.Retrying // renewals after the stop began
		)
		waiting := make(chan int, 1000) // partitions with outcomes to commit
		wk, err := worker.New(worker.Config{
			Read: read.connect(t), Commit: commit.connect(t), Streams: env.Streams, Compaction: env.Config, Owner: "a", Dir: dir, SnapshotEvery: 5 * time.Minute,
			Listener: observe.Listener{
				Applied: func(f observe.Applied) { waiting <- f.Partition },
				Retrying: func(i observe.Retrying) {
					mu.Lock()
					defer mu.Unlock()
					if stopping && (i.Step == "renew lease" || i.Step == "heartbeat") {
						late = append(late, i)
					}
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := make(chan error, 1)
		go func() { done <- wk.Run(ctx) }()
		<-wk.Ready()
		lose(commit)
		for seen, n := map[int]bool{}, 0; len(seen) < env.Streams.Partitions.Count(); n++ {
			env.Publish(events.KindTurn, string(rune('a'+n%26)), []byte("x")) // is rejected
			seen[<-waiting] = true
		}
		lose(read)
		time.Sleep(time.Second) // a commit is under way everywhere
		mu.Lock()
		stopping = true
		mu.Unlock()
		began := time.Now()
		stop()
		err = <-done
		if took := time.Since(began); took > worker.DefaultDrainTimeout {
			t.Errorf("the stop took %s, more than %s", took, worker.DefaultDrainTimeout)
		}
		if !errors.Is(err, partition.ErrDrain) {
			t.Errorf("the stop ended with %v, want %v", err, partition.ErrDrain)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(late) > 0 {
			t.Errorf("%d renewals while it was stopping: %+v", len(late), late)
		}
	})
}

// withoutBroker calls do for a broker that will be gone, and for one that will be frozen: lose does it to a link. read and
// commit are links of a worker with the directory dir. Time is faked.
func withoutBroker(t *testing.T, partitions int, do func(t *testing.T, env *workertest.Env, read, commit *cable, dir string, lose func(*cable))) {
	for name, lose := range map[string]func(*cable){"gone": (*cable).cut, "frozen": (*cable).freeze} {
		t.Run(name, func(t *testing.T) {
			log, dir := t.TempDir(), t.TempDir()
			workertest.EmptyPools()
			defer workertest.EmptyPools()
			ats.Register() // starts the server's own clock outside of the bubble
			defer ats.Unregister()
			synctest.Test(t, func(t *testing.T) {
				env := workertest.Open(t, embedded.Config{Dir: log, Durability: embedded.DurablePower}, topology.Config{Partitions: partitions})
				defer env.Stop()
				read, commit := &cable{to: env.Server}, &cable{to: env.Server}
				defer commit.cut() // unblocks what waits for the connections
				defer read.cut()
				do(t, env, read, commit, dir, lose)
			})
		})
	}
}

// cable is a link to a server that can be cut or frozen. A frozen link drops what is sent and
// returns nothing, without an error.
type cable struct {
	to *embedded.Server

	mu    sync.Mutex // guards the fields below
	gone  bool
	conns []*frozenConn
}

func (c *cable) InProcessConn() (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, errors.New("the cable is cut")
	}
	conn, err := c.to.InProcessConn()
	if err != nil {
		return nil, err
	}
	f := &frozenConn{Conn: conn, frozen: make(chan struct{}), closed: make(chan struct{})}
	c.conns = append(c.conns, f)
	return f, nil
}

func (c *cable) connect(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := connect.Open(context.Background(), connect.Options{InProcess: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func (c *cable) cut() { c.lose(func(f *frozenConn) { _ = f.Close() }) }

func (c *cable) freeze() { c.lose((*frozenConn).freeze) }

// hold buffers what is sent, until release.
func (c *cable) hold() { c.each((*frozenConn).hold) }

func (c *cable) release() { c.each((*frozenConn).release) }

func (c *cable) each(do func(*frozenConn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.conns {
		do(f)
	}
}

func (c *cable) lose(how func(*frozenConn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, f := range c.conns {
		how(f)
	}
}

// frozenConn is a connection that can be frozen, or held for a while.
type frozenConn struct {
	net.Conn
	once, twice    sync.Once
	frozen, closed chan struct{}

	mu       sync.Mutex // guards the fields below
	held     bool
	buffered []byte
}

func (f *frozenConn) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

func (f *frozenConn) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.Conn.Write(f.buffered) // the reader gets the error
	f.held, f.buffered = false, nil
}

func (f *frozenConn) freeze() { f.once.Do(func() { close(f.frozen) }) }

func (f *frozenConn) Close() error {
	f.twice.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

func (f *frozenConn) Write(b []byte) (int, error) {
	select {
	case <-f.frozen:
		return len(b), nil
	default:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held {
		f.buffered = append(f.buffered, b...)
		return len(b), nil
	}
	return f.Conn.Write(b)
}

func (f *frozenConn) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	select {
	case <-f.frozen:
		<-f.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}
