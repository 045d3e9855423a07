package broker

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/events"
)

// env is one embedded server with both streams, and a connection to it.
type env struct {
	t       *testing.T
	srv     *embedded.Server
	nc      *nats.Conn
	js      jetstream.JetStream
	streams *Streams
}

const testBytes = 256 << 20

func newEnv(t *testing.T) *env { return openEnv(t, t.TempDir(), Topology{Partitions: 4}) }

func openEnv(t *testing.T, dir string, top Topology) *env {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: dir, Listen: "-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	w := &env{t: t, srv: srv}
	w.nc = w.connect(Options{})
	w.js = newJS(t, w.nc)
	top.CreateBytes = testBytes
	if w.streams, err = Ensure(t.Context(), w.js, top); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *env) connect(o Options) *nats.Conn {
	w.t.Helper()
	o.InProcess = w.srv
	nc, err := Connect(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

func newJS(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// turn publishes one event and returns its sequence.
func (w *env) turn(session, text string) uint64 {
	w.t.Helper()
	a, err := w.js.Publish(w.t.Context(), "session.turn.t."+session, []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return a.Sequence
}

// takeOver owns partition 1 on a connection of its own.
func (w *env) takeOver(owner string) *Committer {
	w.t.Helper()
	return w.takeOverOn(w.connect(Options{}), owner)
}

func (w *env) takeOverOn(nc *nats.Conn, owner string) *Committer {
	w.t.Helper()
	c, _, err := TakeOver(w.t.Context(), nc, Claim{Partition: 1, Owner: owner, Config: "cfg", ReplyTimeout: 150 * time.Millisecond})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *env) marker(partition int) Stored {
	w.t.Helper()
	s, err := LastMarker(w.t.Context(), w.nc, partition)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// stored lists "subject data" of what a filter selects of OUTCOMES.
func (w *env) stored(filter string) (out []string) {
	w.t.Helper()
	err := ReadStream(w.t.Context(), w.js, OutcomesStream, filter, 0, 0, func(m jetstream.Msg, _ uint64) error {
		out = append(out, m.Subject()+" "+string(m.Data()))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *env) state(stream string) StreamState {
	w.t.Helper()
	s, err := State(w.t.Context(), w.js, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// budgets makes n outcomes of session s in partition 1.
func budgets(n int, text string) []Message {
	out := make([]Message, n)
	for i := range out {
		out[i] = Message{
			Subject: events.Outcome(1, events.KindBudget, events.Address{Tenant: "t", Session: fmt.Sprintf("s%d", i)}),
			Data:    []byte(text),
		}
	}
	return out
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// wire is a TCP proxy in front of the server that can lose a request, or its
// answer. The link stays as it is until it is cut.
type wire struct {
	ln     net.Listener
	target string

	mu     sync.Mutex
	fault  fault
	needle []byte // marks the request
	conns  []net.Conn
	hit    chan struct{} // closed when the request has come by
}

type fault int

const (
	none        fault = iota
	loseRequest       // nothing of it gets to the server
	loseAnswer        // the request passes, its answer does not
)

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{ln: ln, target: target}
	var wg sync.WaitGroup
	wg.Go(func() { w.accept(&wg) })
	t.Cleanup(func() {
		ln.Close()
		w.cut()
		wg.Wait()
	})
	return w
}

func (w *wire) url() string { return "nats://" + w.ln.Addr().String() }

// arm sets the fault for the next request that contains needle.
func (w *wire) arm(f fault, needle string) (hit <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault, w.needle, w.hit = f, []byte(needle), make(chan struct{})
	return w.hit
}

// cut breaks every link.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = none
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func (w *wire) accept(wg *sync.WaitGroup) {
	for {
		client, err := w.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.target)
		if err != nil {
			client.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, client, server)
		w.mu.Unlock()
		wg.Go(func() { w.copy(server, client, w.up) })
		wg.Go(func() { w.copy(client, server, w.down) })
	}
}

func (w *wire) copy(dst, src net.Conn, pass func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && pass(buf[:n]) {
			if _, err := dst.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	src.Close()
	dst.Close()
}

// up sees what the client sends.
func (w *wire) up(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == none {
		return true
	}
	if !w.struck() && bytes.Contains(b, w.needle) {
		close(w.hit)
	}
	return w.fault == loseAnswer || !w.struck()
}

// down sees what the server answers.
func (w *wire) down([]byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault == none || !w.struck()
}

// struck reports whether the request has come by; mu is held.
func (w *wire) struck() bool {
	select {
	case <-w.hit:
		return true
	default:
		return false
	}
}
