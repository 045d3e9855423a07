package brokertest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
)

// EmptyPools empties the pools of nats.go: a timer of one synctest bubble is fatal outside of
// it. The first collection moves the content of a pool, the second drops it.
func EmptyPools() {
	runtime.GC()
	runtime.GC()
}

// Payload returns n bytes that differ from those of any other seed.
func Payload(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Env is one embedded server with both streams, and a connection to it.
type Env struct {
	T       *testing.T
	Srv     *embedded.Server
	NC      *nats.Conn
	JS      jetstream.JetStream
	Streams *topology.Streams
}

// CreateBytes is the bound of each stream of an [Env].
const CreateBytes = 256 << 20

// New starts a server with streams of four partitions, until the test ends.
func New(t *testing.T) *Env { return Open(t, t.TempDir(), topology.Config{Partitions: 4}) }

// Open starts a server on a directory, with streams as in c.
func Open(t *testing.T, dir string, c topology.Config) *Env {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: dir, Listen: "-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	w := &Env{T: t, Srv: srv}
	w.NC = w.Connect(connect.Options{})
	w.JS = NewJS(t, w.NC)
	c.CreateBytes = CreateBytes
	if w.Streams, err = topology.Ensure(t.Context(), w.JS, c); err != nil {
		t.Fatal(err)
	}
	return w
}

// Connect opens another connection, until the test ends.
func (w *Env) Connect(o connect.Options) *nats.Conn {
	w.T.Helper()
	o.InProcess = w.Srv
	nc, err := connect.Open(w.T.Context(), o)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(nc.Close)
	return nc
}

// NewJS returns the JetStream of a connection, with a long timeout for a busy machine.
func NewJS(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Turn publishes one event and returns its sequence.
func (w *Env) Turn(session, text string) uint64 {
	w.T.Helper()
	a, err := w.JS.Publish(w.T.Context(), "session.turn.t."+session, []byte(text))
	if err != nil {
		w.T.Fatal(err)
	}
	return a.Sequence
}

// State returns the state of a stream.
func (w *Env) State(stream string) topology.StreamState {
	w.T.Helper()
	s, err := topology.State(w.T.Context(), w.JS, stream)
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

// Within returns a context of the test that ends after d.
func Within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
