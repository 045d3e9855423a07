package client

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
)

// waitLimit is how long a test waits for what takes milliseconds on an idle machine.
const waitLimit = time.Minute

// tester is what a test and a rapid check have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// testEnv is a real server, with a worker that can be stopped.
type testEnv struct {
	dial    func() (*nats.Conn, error)
	address string // of the server's listener; "" without one
	streams *topology.Streams
	nc      *nats.Conn
	js      jetstream.JetStream
	config  *compaction.Config
	stopped func() // stops the worker; nil when there is none

	mu       sync.Mutex // guards sessions
	sessions int
}

func newEnv(t *testing.T) *testEnv { return newEnvOf(t, embedded.Config{}) }

func newEnvOf(t *testing.T, c embedded.Config) *testEnv {
	t.Helper()
	c.Dir = t.TempDir()
	server, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	env := newEnvAt(t, func() (*nats.Conn, error) {
		return connect.Open(context.Background(), connect.Options{InProcess: server})
	})
	env.address = strings.TrimPrefix(server.ClientURL(), "nats://")
	return env
}

func newEnvAt(t *testing.T, dial func() (*nats.Conn, error)) *testEnv {
	t.Helper()
	env := &testEnv{dial: dial}
	env.nc = env.connect(t)
	t.Cleanup(env.nc.Close)
	var err error
	if env.js, err = jetstream.New(env.nc, jetstream.WithDefaultTimeout(waitLimit)); err != nil {
		t.Fatal(err)
	}
	if env.streams, err = topology.Ensure(t.Context(), env.js, topology.Config{Partitions: 2, CreateBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	if env.config, err = compaction.NewConfig(policy.Default(), measure.DefaultWindows()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(env.stop)
	return env
}

func (env *testEnv) connect(t tester) *nats.Conn {
	t.Helper()
	nc, err := env.dial()
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// start starts a worker and waits until it serves.
func (env *testEnv) start(t tester) {
	t.Helper()
	read, commit := env.connect(t), env.connect(t)
	wk, err := worker.New(worker.Config{
		Read: read, Commit: commit, Streams: env.streams, Compaction: env.config, Owner: "w", Summarizer: extract.New(), MarkerEvery: 20 * time.Millisecond,
		Listener: observe.Listener{Compacted: func(e observe.Compacted) {
			if e.Invalid != nil {
				t.Errorf("session %s, generation %d: %v", e.Address, e.Body.Generation, e.Invalid)
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- wk.Run(ctx) }()
	select {
	case <-wk.Ready():
	case err := <-done:
		t.Fatalf("run worker: %v", err)
	}
	env.stopped = func() {
		cancel()
		<-done
		read.Close()
		commit.Close()
	}
}

// stop stops the worker, if there is one.
func (env *testEnv) stop() {
	if env.stopped != nil {
		env.stopped()
		env.stopped = nil
	}
}

// client is a new one, on a connection of its own.
func (env *testEnv) client(t tester) *Client {
	t.Helper()
	c, err := Connect(context.Background(), Options{Conn: env.connect(t)})
	if err != nil {
		t.Fatal(err)
	}
	c.own = true // the test gives no other owner
	return c
}

// name is that of a session that no test has used.
func (env *testEnv) name() string {
	env.mu.Lock()
	defer env.mu.Unlock()
	env.sessions++
	return fmt.Sprintf("s%d", env.sessions)
}

// small is a model whose window is full after a few turns.
var small = Config{Model: Model{Provider: "openai", Name: "gpt-4o", ContextWindow: 1500, MaxOutputTokens: 300}}

func (env *testEnv) open(t tester, c *Client, name string, config Config) *Session {
	t.Helper()
	s, err := c.Open(context.Background(), name, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// context requests a session's history as of a generation from a worker, and waits until
// it has applied every turn of the log.
func (env *testEnv) context(t tester, s *Session, generation int64) *events.ContextResponse {
	t.Helper()
	last, err := env.last(s)
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		out := &events.ContextResponse{}
		in := events.ContextRequest{About: s.at.About(), Generation: &generation}
		err := s.c.request(context.Background(), events.SubjectContext, in, out)
		if err == nil && out.Through.Seq >= last {
			return out
		}
		if time.Now().After(until) {
			t.Fatalf("context of %s, generation %d: %v, through %+v, the log has %d", s.at.Session, generation, err, out.Through, last)
		}
	}
}

// last is the sequence of a session's last turn in the log.
func (env *testEnv) last(s *Session) (uint64, error) {
	stream, err := env.js.Stream(context.Background(), topology.LogStream)
	if err != nil {
		return 0, err
	}
	m, err := stream.GetLastMsgForSubject(context.Background(), "log.*.turn."+s.at.String())
	if err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

// user, assistant, call and result are messages of the dialect openai.
func user(text string) any { return map[string]any{"role": "user", "content": text} }

func assistant(text string) any { return map[string]any{"role": "assistant", "content": text} }

func call(id, path string) any {
	return map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
		"id": id, "type": "function", "function": map[string]any{"name": "read_file", "arguments": fmt.Sprintf(`{"path":%q}`, path)},
	}}}
}

func result(id, text string) any {
	return map[string]any{"role": "tool", "tool_call_id": id, "content": text}
}

// words is a text of about n tokens.
func words(n int) string { return strings.Repeat("lorem <ipsum> ", n/3+1) }

// publish appends a turn and fails the test on an error.
func publish(t tester, s *Session, messages ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := s.Publish(ctx, Turn{Messages: messages}); err != nil {
		t.Fatal(err)
	}
}

// history is Context, without an error.
func history(t tester, s *Session) *History {
	t.Helper()
	h, err := s.Context(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// eventually waits until a session's history is as wanted.
func eventually(t tester, s *Session, what string, ok func(*History) bool) *History {
	t.Helper()
	for until := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		h := history(t, s)
		if ok(h) {
			return h
		}
		if time.Now().After(until) {
			t.Fatalf("not %s: generation %d, turn %d, %d messages", what, h.Generation, h.Turn, len(h.Messages))
		}
	}
}

// TestMain makes the checks of a property fewer: each one uses a server.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
