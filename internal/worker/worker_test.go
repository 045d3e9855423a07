package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/summarize"
	"compactd/internal/worker"
	"compactd/internal/worker/audit"
)

// waitLimit is how long a test waits for what takes moments on an idle machine.
const waitLimit = time.Minute

// world is a real server with the streams, in a folder of its own.
type world struct {
	t       *testing.T
	server  *embedded.Server
	conn    *nats.Conn
	js      jetstream.JetStream
	streams *topology.Streams
	config  *compaction.Config

	maxAhead     int                  // of the next worker; 0 is the default
	drainTimeout time.Duration        // of the next worker; 0 is the default
	summarizer   summarize.Summarizer // of the next worker; nil makes none
	markEvery    time.Duration        // the same; at least 50 ms

	ledgers         string        // folder of the next worker's checkpoints; "" for none
	checkpointEvery time.Duration // of the next worker; 0 is the default
	snapshotEvery   time.Duration // the same

	checkpointEvents int           // the same
	maxLedgerBytes   int           // the same
	outcomeBytes     int64         // the same
	maxLedgers       int           // the same
	leaseTTL         time.Duration // the same
}

func newWorld(t *testing.T, dir string) *world {
	t.Helper()
	return openWorld(t, embedded.Config{Dir: dir}, topology.Config{Partitions: 4})
}

func openWorld(t *testing.T, c embedded.Config, top topology.Config) *world {
	t.Helper()
	s, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, server: s, config: newConfig(t, withoutSummaries())}
	t.Cleanup(w.stop)
	w.conn = w.connect()
	if w.js, err = jetstream.New(w.conn, jetstream.WithDefaultTimeout(waitLimit)); err != nil {
		t.Fatal(err)
	}
	top.CreateBytes = 1 << 30
	if w.streams, err = topology.Ensure(t.Context(), w.js, top); err != nil {
		t.Fatal(err)
	}
	return w
}

// withoutSummaries is the default policy for workers that make none.
func withoutSummaries() compaction.Policy {
	p := compaction.DefaultPolicy()
	p.Summarize.Enabled = false
	return p
}

func newConfig(t *testing.T, p compaction.Policy) *compaction.Config {
	t.Helper()
	c, err := compaction.NewConfig(p, compaction.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) connect() *nats.Conn {
	w.t.Helper()
	nc, err := connect.Open(context.Background(), connect.Options{InProcess: w.server})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

func (w *world) stop() {
	if w.conn != nil {
		w.conn.Close()
	}
	w.server.Stop()
}

// running is a worker that serves a world.
type running struct {
	worker *worker.Worker
	cancel context.CancelFunc
	done   chan error // gets what Run returned, and is closed
}

// start starts a worker.
func (w *world) start(owner string, l worker.Listener) *running {
	w.t.Helper()
	wk, err := worker.New(worker.Config{
		Read: w.connect(), Commit: w.connect(), Streams: w.streams, Compaction: w.config, Owner: owner, Listener: l,
		MarkEvery: max(w.markEvery, 50*time.Millisecond), MaxAhead: w.maxAhead,
		DrainTimeout: w.drainTimeout, Summarizer: w.summarizer, Dir: w.ledgers, CheckpointEvery: w.checkpointEvery, MaxLedgers: w.maxLedgers,
		LeaseTTL: w.leaseTTL, SnapshotEvery: w.snapshotEvery, CheckpointEvents: w.checkpointEvents,
		MaxLedgerBytes: w.maxLedgerBytes, OutcomeBytes: w.outcomeBytes,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	r := &running{worker: wk, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- wk.Run(ctx); close(r.done) }()
	return r
}

// stop ends the worker in good order.
func (r *running) stop() error {
	r.cancel()
	return <-r.done
}

// run starts a worker, waits until it is ready, and returns how to stop it.
func (w *world) run(owner string, l worker.Listener) (stop func() error) {
	w.t.Helper()
	r := w.start(owner, l)
	select {
	case <-r.worker.Ready():
	case err := <-r.done:
		w.t.Fatalf("run worker: %v", err)
	}
	return r.stop
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
	if err := w.settled(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	state, err := topology.State(ctx, w.js, topology.LogStream)
	if err != nil {
		return err
	}
	return commit.AwaitCursor(ctx, w.js, w.streams.Partitions, state.Last)
}

// stored reads all outcomes by subject.
func (w *world) stored() map[string][]string { return bySubject(w.toldBySession()) }

func bySubject(sessions map[place][]outcome) map[string][]string {
	out := map[string][]string{}
	for _, all := range sessions {
		for _, o := range all {
			out[o.subject] = append(out[o.subject], o.data)
		}
	}
	return out
}

// redecided is what the log alone says, partition by partition.
func (w *world) redecided() []outcome {
	w.t.Helper()
	var out []outcome
	err := audit.Redecide(w.t.Context(), w.conn, w.streams.Partitions, w.config, func(r audit.Redecided) error {
		out = append(out, newOutcome(r.Subject, r.Data))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// wantAsLogSays compares what is stored with what the log alone says.
func (w *world) wantAsLogSays() {
	w.t.Helper()
	if diff := cmp.Diff(bySession(w.redecided()), w.toldBySession(), cmp.AllowUnexported(outcome{}, place{})); diff != "" {
		w.t.Errorf("stored outcomes are not what the log says (-log +stored):\n%s", diff)
	}
}

// onlyConfig reads the one config that is stored.
func (w *world) onlyConfig() *compaction.Config {
	w.t.Helper()
	var found []*compaction.Config
	err := stream.ReadStream(w.t.Context(), w.js, topology.OutcomesStream, events.Config("*"), 1, 0, func(m jetstream.Msg, _ uint64) error {
		c, err := compaction.ParseConfig(m.Data())
		if err == nil && !slices.ContainsFunc(found, func(f *compaction.Config) bool { return f.Hash() == c.Hash() }) {
			found = append(found, c) // workers that start at once may put it twice
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(found) != 1 {
		w.t.Fatalf("%d configs are stored", len(found))
	}
	return found[0]
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
	w.wantAsLogSays()
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
			m, err := heard.NextMsg(waitLimit)
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
			if v := validate.Messages(c.Format, c.Messages); len(v) > 0 {
				t.Errorf("generation %d: %v", c.Generation, v)
			}
		}
	}
	if told < 2 {
		t.Errorf("%d compactions in 30 turns of 1,000 tokens in a window of 16,000", told)
	}
}
