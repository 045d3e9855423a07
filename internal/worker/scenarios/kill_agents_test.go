package scenarios_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
)

// agentsProcess is a worker's binary with a listener for agents.
type agentsProcess struct {
	process
	at string // the listener
}

func startAgentsProcess(t *testing.T, bin, url, tokens string) *agentsProcess {
	t.Helper()
	p := &agentsProcess{at: workertest.FreePort(t)}
	p.process = process{t: t, bin: bin, data: t.TempDir(), args: []string{
		"--nats", url, "--lease-ttl", "1s", "--partitions", "4", "--http", "off", "--agents", p.at, "--agents-tokens", tokens, "--agents-rate", "100000",
	}}
	t.Cleanup(p.kill)
	p.start()
	p.awaitReady()
	return p
}

// call sends a request. It closes sent once the whole request is on its way.
func (p *agentsProcess) call(path string, body any, sent chan<- struct{}) (string, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	ctx := p.t.Context()
	if sent != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.at+path, strings.NewReader(string(data)))
	if err != nil {
		return "", err
	}
	r.GetBody = nil // else a request that was cut off is sent a second time
	r.Header.Set("Authorization", "Bearer "+workertest.DefaultToken)
	resp, err := new(http.Transport).RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return string(text), err
}

// crashes is a conversation by way of a gateway, and a reader of events, whose worker is killed.
type crashes struct {
	t    *testing.T
	talk workertest.SyncAgent
	last events.CompressResponse

	got   []workertest.Event
	after string // the last id that came
}

// compress returns what to send; not ok is a history that came back as it was.
func (c *crashes) compress(p *agentsProcess, sent chan<- struct{}) (out events.CompressResponse, err error) {
	text, err := p.call("/v1/compress", map[string]any{"messages": c.talk.History, "model": "gpt-4"}, sent)
	if err == nil {
		err = codec.Unmarshal([]byte(text), &out)
	}
	if err == nil && (out.Code != "" || len(out.Messages) == 0) {
		err = fmt.Errorf("%s: %d messages", out.Code, len(out.Messages))
	}
	return out, err
}

// again repeats a call until a worker answers it.
func (c *crashes) again(do func() error) {
	c.t.Helper()
	for end := time.Now().Add(workertest.WaitLimit); ; workertest.Pause(c.t, 10*time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			c.t.Fatal(err)
		}
	}
}

// step goes on with the conversation. Before the next generation what was sent is the beginning
// of what is sent.
func (c *crashes) step(p *agentsProcess) {
	c.t.Helper()
	c.talk.Call(len(c.talk.History), 60)
	c.again(func() error {
		out, err := c.compress(p, nil)
		if err == nil {
			c.take("a step", out, false)
		}
		return err
	})
}

// take compares an answer with the one before it.
func (c *crashes) take(what string, out events.CompressResponse, same bool) {
	c.t.Helper()
	before := c.last
	switch {
	case before.Session != "" && out.Session != before.Session:
		c.t.Errorf("%s: the session is %q, and was %q", what, out.Session, before.Session)
	case out.TokensAfter > 8192:
		c.t.Errorf("%s: %d tokens", what, out.TokensAfter)
	case (same || out.Generation == before.Generation) && !workertest.BeginsWith(out.Messages, before.Messages), same && len(out.Messages) != len(before.Messages):
		c.t.Errorf("%s: generation %d after %d has other bytes:\n%s\n%s", what, out.Generation, before.Generation, before.Messages, out.Messages)
	}
	c.last = out
}

// repeat sends the history again: the answer has the same bytes.
func (c *crashes) repeat(what string, p *agentsProcess) {
	c.t.Helper()
	c.again(func() error {
		out, err := c.compress(p, nil)
		if err == nil {
			c.take(what, out, true)
		}
		return err
	})
}

// receive notes an event.
func (c *crashes) receive(e workertest.Event) {
	if c.after = e.ID; e.Name != "" {
		c.got = append(c.got, e)
	}
}

// follow opens the reader where it was cut off.
func (c *crashes) follow(p *agentsProcess) (received <-chan workertest.Event, stop func()) {
	c.t.Helper()
	c.again(func() (err error) {
		received, stop, err = workertest.Follow(c.t, p.at, "s1", c.after)
		return err
	})
	return received, stop
}

// crash kills a worker that has a reader of events and calls to answer, and reports whether one
// of them was cut off.
func (c *crashes) crash(p *agentsProcess, received <-chan workertest.Event) (cut bool) {
	c.t.Helper()
	c.talk.Call(len(c.talk.History), 60)
	type answer struct {
		out events.CompressResponse
		err error
	}
	answered, counted := make(chan answer, 1), make(chan error, 1)
	sent := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	usage := map[string]any{"session": c.last.Session, "view": c.last.View, "usage": map[string]int{"prompt_tokens": 900, "completion_tokens": 9}}
	go func() {
		_, err := p.call("/v1/usage", usage, sent[1])
		counted <- err
	}()
	go func() {
		out, err := c.compress(p, sent[0])
		answered <- answer{out, err}
	}()
	for _, on := range sent {
		select {
		case <-on:
		case <-time.After(workertest.WaitLimit):
			c.t.Fatal("a request is not sent")
		}
	}
	p.kill()
	a := <-answered
	if err := <-counted; err != nil {
		cut = true
	}
	if a.err == nil {
		c.take("before the crash", a.out, false)
	}
	for e := range received { // what was on its way
		c.receive(e)
	}
	return cut || a.err != nil
}

// A worker is killed while a reader of events is connected to it and calls of a gateway are in
// flight. The reader that comes back with the id of its last event gets each event once, and the
// gateway the same bytes as before: from the worker that begins again, and from one that takes
// over.
func TestKillAgents(t *testing.T) {
	t.Parallel()
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:-1"})
	if err != nil {
		t.Fatal(err)
	}
	env := &workertest.Env{T: t, Server: s}
	t.Cleanup(env.Stop)
	env.Conn = env.Connect()
	if env.JS, err = jetstream.New(env.Conn, jetstream.WithDefaultTimeout(workertest.WaitLimit)); err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(workertest.TokenLine(workertest.DefaultToken, "default agent")), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := buildWorker(t)
	p := startAgentsProcess(t, bin, s.ClientURL(), tokens)
	c := &crashes{t: t, talk: workertest.SyncAgent{T: t}}
	c.talk.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
	for steps := 0; c.last.Generation == 0; steps++ {
		if c.step(p); steps > 40 {
			t.Fatal("nothing is compacted: the test shows nothing")
		}
	}
	turns := 0
	publish := func() {
		for range 6 {
			turns++
			env.Publish(events.KindTurn, "s1", workertest.Turn(turns))
		}
	}
	received, stop := c.follow(p)
	c.receive(<-received) // where it begins
	cut, kills := 0, 0
	for ; kills < 3 || cut == 0 && kills < 20; kills++ {
		publish()
		c.receive(workertest.NextEvent(t, received)) // it is in the middle of them
		if c.crash(p, received) {
			cut++
		}
		stop()
		publish() // while no worker is there
		p.start()
		p.awaitReady()
		received, stop = c.follow(p)
		c.step(p)
		c.repeat("after a restart", p)
	}
	other := startAgentsProcess(t, bin, s.ClientURL(), tokens)
	c.repeat("by way of another worker", other)
	publish()
	c.receive(workertest.NextEvent(t, received))
	if c.crash(p, received) {
		cut++
	}
	stop()
	publish()
	received, stop = c.follow(other)
	defer stop()
	c.step(other)
	c.repeat("after a take-over", other)
	awaitDecided(t, s.ClientURL())
	want := env.EventsOf("s1")
	for len(c.got) < len(want) {
		c.receive(workertest.NextEvent(t, received))
	}
	if !slices.Equal(c.got, want) {
		t.Errorf("the reader got %d events, the stream has %d, or others", len(c.got), len(want))
	}
	if cut == 0 || len(want) < 2*kills {
		t.Errorf("%d of %d kills cut off a call, %d events: the test shows nothing", cut, kills+1, len(want))
	}
	t.Logf("%d kills, %d with a call cut off, %d events, generation %d", kills+1, cut, len(want), c.last.Generation)
	other.terminate()
}
