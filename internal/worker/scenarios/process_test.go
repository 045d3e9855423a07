package scenarios_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
)

// process is the worker's binary, on a directory and a port that stay the same.
type process struct {
	t                 *testing.T
	bin, data, listen string
	args              []string // instead of those for an embedded server
	env               []string

	cmd    *exec.Cmd
	log    *lines
	exited chan error
}

func (p *process) url() string { return "nats://" + p.listen }

func (p *process) start() {
	p.t.Helper()
	p.log = &lines{more: make(chan struct{}, 1)}
	for _, dir := range []string{"", "nats", "ledgers"} { // other users may read a t.TempDir, and a copy of it
		if err := os.Chmod(filepath.Join(p.data, dir), 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.t.Fatal(err)
		}
	}
	args := p.args
	if args == nil {
		args = []string{"--listen", p.listen, "--partitions", "4"}
	}
	// Agents that never pause would reach what a tenant may store in ten minutes.
	p.cmd = exec.Command(p.bin, append([]string{"--data", p.data, "--log-format", "json", "--tenant-outcomes-per-hour", "off"}, args...)...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	cmd, exited := p.cmd, make(chan error, 1)
	p.exited = exited
	go func() { exited <- cmd.Wait() }()
}

func (p *process) awaitReady() {
	p.t.Helper()
	if err := p.awaitReadyOrEnd(); err != nil {
		p.t.Fatal(err)
	}
}

// awaitReadyOrEnd returns why the process does not become ready.
func (p *process) awaitReadyOrEnd() error {
	deadline := time.After(workertest.WaitLimit)
	for !p.log.contains(`"message":"ready"`) {
		select {
		case <-p.log.more:
		case err := <-p.exited:
			p.exited <- err // for kill
			return fmt.Errorf("the worker ended: %w\n%s", err, p.log.text())
		case <-deadline:
			return fmt.Errorf("the worker is not ready\n%s", p.log.text())
		}
	}
	return nil
}

// kill ends the process as a crash would, and waits until it is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
	p.cmd = nil
}

// terminate sends SIGTERM, and wants the process to end without an error.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := <-p.exited; err != nil {
		p.t.Errorf("the worker did not stop gracefully: %v\n%s", err, p.log.text())
	}
	p.cmd = nil
}

// lines is what a process has written.
type lines struct {
	mu   sync.Mutex // guards buf
	buf  bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.buf.Write(b)
}

func (l *lines) contains(s string) bool { return strings.Contains(l.text(), s) }

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// buildWorker builds the worker's binary.
func buildWorker(t *testing.T, flags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "worker")
	args := append([]string{"build", "-buildvcs=false", "-o", bin}, flags...)
	if out, err := exec.CommandContext(t.Context(), "go", append(args, "compactd/cmd/worker")...).CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	return bin
}

// subscriber is a plain subscriber to all outcomes.
type subscriber struct {
	t    *testing.T
	nc   *nats.Conn
	more chan struct{}

	mu       sync.Mutex // guards received
	received []*nats.Msg
}

func newSubscriber(t *testing.T, url string) *subscriber {
	t.Helper()
	nc, _ := workertest.Dial(t, url)
	sub := &subscriber{t: t, nc: nc, more: make(chan struct{}, 1)}
	for _, k := range events.OutcomeKinds {
		s, err := nc.Subscribe(events.Published(k, events.Address{Tenant: "*", Session: "*"}), sub.receive)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetPendingLimits(-1, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return sub
}

func (sub *subscriber) receive(m *nats.Msg) {
	sub.mu.Lock()
	sub.received = append(sub.received, m)
	sub.mu.Unlock()
	select {
	case sub.more <- struct{}{}:
	default:
	}
}

func (sub *subscriber) count() int {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return len(sub.received)
}

// await waits until n outcomes were received in all.
func (sub *subscriber) await(n int) {
	sub.t.Helper()
	deadline := time.After(workertest.WaitLimit)
	for sub.count() < n {
		select {
		case <-sub.more:
		case <-deadline:
			sub.t.Fatalf("received %d outcomes, not %d: no progress", sub.count(), n)
		}
	}
}

func (sub *subscriber) stop() []*nats.Msg {
	sub.nc.Close()
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.received
}

// ack is one acknowledged turn.
type ack struct {
	subject string
	seq     uint64
	data    []byte
}

// agentFleet is a number of agents on a few connections. They publish until they are stopped. A
// turn without acknowledgement is sent again: with a message id in every other session,
// without one in the others.
type agentFleet struct {
	t      *testing.T
	conns  []*nats.Conn
	cancel context.CancelFunc
	limit  *rate.Limiter
	wg     sync.WaitGroup

	mu   sync.Mutex // guards acks
	acks []ack
}

func newAgentFleet(t *testing.T, url string, sessions int, perSecond rate.Limit) *agentFleet {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &agentFleet{t: t, cancel: cancel, limit: rate.NewLimiter(perSecond, 10)}
	t.Cleanup(cancel)
	for range 4 {
		nc, _ := workertest.Dial(t, url)
		f.conns = append(f.conns, nc)
	}
	for s := range sessions {
		js, err := jetstream.New(f.conns[s%len(f.conns)])
		if err != nil {
			t.Fatal(err)
		}
		f.wg.Go(func() { f.agent(ctx, js, s) })
	}
	return f
}

func (f *agentFleet) agent(ctx context.Context, js jetstream.JetStream, session int) {
	subject := subjectOfAgent(session)
	for n := 1; f.limit.Wait(ctx) == nil; n++ {
		m := &nats.Msg{Subject: subject, Data: agentTurn(session, n), Header: nats.Header{}}
		if session%2 == 0 {
			m.Header.Set(nats.MsgIdHdr, fmt.Sprintf("s%d-%d", session, n))
		}
		for ctx.Err() == nil {
			one, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			a, err := js.PublishMsg(one, m)
			cancel()
			if err == nil {
				f.note(ack{subject: subject, seq: a.Sequence, data: m.Data})
				break
			}
		}
	}
}

func subjectOfAgent(session int) string {
	return events.Published(events.KindTurn, events.Address{Tenant: fmt.Sprintf("t%d", session%3), Session: fmt.Sprintf("s%d", session)})
}

func (f *agentFleet) note(a ack) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acks = append(f.acks, a)
}

// stop ends the agents and returns their acknowledgements. The server has received everything
// that they sent.
func (f *agentFleet) stop() []ack {
	f.t.Helper()
	f.cancel()
	f.wg.Wait()
	for _, nc := range f.conns {
		for err := nc.FlushTimeout(workertest.WaitLimit); err != nil; err = nc.FlushTimeout(workertest.WaitLimit) {
			if nc.IsClosed() || errors.Is(err, nats.ErrTimeout) {
				f.t.Fatal(err)
			} // otherwise the connection was being restored
		}
		nc.Close()
	}
	return f.acks
}

// agentTurn is turn n of a session: larger in sessions of a higher number, in one of three
// forms, with a window that is full after a few turns.
func agentTurn(session, n int) []byte {
	text := strings.Repeat(fmt.Sprintf("word %d of %d. ", n, session), 10+3*session)
	path := fmt.Sprintf("src/file%d.go", n%5)
	const head = `{"v":1,"id":"%d-%d","turn":%d,"model":{"provider":%q,"name":%q,"max_output_tokens":500,"context_window":6000},`
	switch session % 3 {
	case 0:
		return fmt.Appendf(nil, head+`"messages":[{"role":"user","content":%q},`+
			`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"read_file","input":{"path":%q}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":%q}]},{"role":"assistant","content":"read it"}]}`,
			session, n, n, "anthropic", "claude-sonnet-4-20250514", text[:len(text)/4], n, path, n, text)
	case 1:
		return fmt.Appendf(nil, head+`"messages":[{"role":"user","content":%q},`+
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read_file","arguments":%q}}]},`+
			`{"role":"tool","tool_call_id":"c%d","content":%q},{"role":"assistant","content":"read it"}]}`,
			session, n, n, "openai", "gpt-4o", text[:len(text)/4], n, fmt.Sprintf(`{"path":%q}`, path), n, text)
	default:
		return fmt.Appendf(nil, head+`"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`,
			session, n, n, "openai", "gpt-4o", text, text)
	}
}
