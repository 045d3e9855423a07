package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker"
)

// world is a real server with the streams, in a folder of its own.
type world struct {
	t       *testing.T
	server  *broker.Server
	conn    *nats.Conn
	js      jetstream.JetStream
	streams *broker.Streams
	config  *compaction.Config
}

func newWorld(t *testing.T, dir string) *world {
	t.Helper()
	s, err := broker.StartServer(broker.ServerConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, server: s}
	w.conn = w.connect()
	if w.js, err = jetstream.New(w.conn); err != nil {
		t.Fatal(err)
	}
	if w.streams, err = broker.Ensure(t.Context(), w.js, broker.Topology{Partitions: 4, CreateBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	if w.config, err = compaction.NewConfig(compaction.DefaultPolicy(), compaction.DefaultWindows()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	return w
}

func (w *world) connect() *nats.Conn {
	w.t.Helper()
	nc, err := w.server.Connect(context.Background(), broker.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

func (w *world) stop() {
	w.conn.Close()
	w.server.Stop()
}

// run starts a worker and returns how to stop it.
func (w *world) run(owner string, l worker.Listener) (stop func() error) {
	w.t.Helper()
	wk, err := worker.New(worker.Config{
		Read: w.connect(), Commit: w.connect(), Streams: w.streams, Compaction: w.config, Owner: owner, Listener: l,
		MarkEvery: 50 * time.Millisecond,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- wk.Run(ctx) }()
	select {
	case <-wk.Ready():
	case err := <-done:
		w.t.Fatalf("run worker: %v", err)
	}
	return func() error { cancel(); return <-done }
}

// turn is a session.turn of one exchange, about 1,000 tokens.
func turn(n int) []byte {
	text := strings.Repeat(fmt.Sprintf("word %d ", n), 200)
	return fmt.Appendf(nil, `{"v":1,"id":"t%d","turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":16000},"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`, n, n, text, text)
}

func (w *world) publish(kind events.Kind, session string, data []byte) uint64 {
	w.t.Helper()
	subject, err := events.Input(kind, events.Address{Tenant: "default", Session: session})
	if err != nil {
		w.t.Fatal(err)
	}
	ack, err := w.js.Publish(context.Background(), subject, data)
	if err != nil {
		w.t.Fatal(err)
	}
	return ack.Sequence
}

// settle waits until every partition is marked up to the end of the log.
func (w *world) settle() {
	w.t.Helper()
	state, err := broker.State(context.Background(), w.js, broker.LogStream)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := broker.AwaitCursor(w.t.Context(), w.js, w.streams.Partitions, state.Last); err != nil {
		w.t.Fatal(err)
	}
}

// stored reads all outcomes by subject.
func (w *world) stored() map[string][]string {
	w.t.Helper()
	out := map[string][]string{}
	err := broker.ReadStream(w.t.Context(), w.js, broker.OutcomesStream, events.OutcomesFilter, 1, 0, func(m jetstream.Msg, _ uint64) error {
		out[m.Subject()] = append(out[m.Subject()], string(m.Data()))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// redecided is what the log alone says, by subject.
func (w *world) redecided() map[string][]string {
	w.t.Helper()
	out := map[string][]string{}
	err := worker.Redecide(w.t.Context(), w.conn, w.streams.Partitions, w.config, func(r worker.Redecided) error {
		out[r.Subject] = append(out[r.Subject], string(r.Data))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// A session that outgrows its window is compacted, again and again, across a
// restart of the worker; what is stored is what the log alone says.
func TestCompacts(t *testing.T) {
	w := newWorld(t, t.TempDir())
	heard, err := w.connect().SubscribeSync(events.Published(events.KindCompacted, events.Address{Tenant: "default", Session: "*"}))
	if err != nil {
		t.Fatal(err)
	}
	stop := w.run("a", worker.Listener{})
	for n := 1; n <= 20; n++ {
		w.publish(events.KindTurn, "s1", turn(n))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for n := 21; n <= 30; n++ {
		w.publish(events.KindTurn, "s1", turn(n))
	}
	stop = w.run("b", worker.Listener{})
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	stored := w.stored()
	if diff := cmp.Diff(w.redecided(), stored); diff != "" {
		t.Errorf("stored outcomes are not what the log says (-log +stored):\n%s", diff)
	}
	told := 0
	for subject, bodies := range stored {
		at, err := events.ParseOutcome(subject)
		if err != nil {
			t.Fatal(err)
		}
		if at.Kind != events.KindCompacted {
			continue
		}
		for _, b := range bodies {
			told++
			m, err := heard.NextMsg(5 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Data) != b {
				t.Error("an agent heard something else than what is stored")
			}
			var c events.Compacted
			if err := events.Unmarshal(m.Data, &c); err != nil {
				t.Fatal(err)
			}
			if v := events.Validate(c.Format, c.Messages); len(v) > 0 {
				t.Errorf("generation %d: %v", c.Generation, v)
			}
		}
	}
	if told < 2 {
		t.Errorf("%d compactions in 30 turns of 1,000 tokens in a window of 16,000", told)
	}
}
