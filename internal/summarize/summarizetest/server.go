package summarizetest

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"compactd/internal/summarize/provider"
)

// Key is what [Server.Config] sets: no word of it may appear in an error or a log.
const Key = "canary-key-5f1d0c"

// Server is a provider of models. It speaks all dialects.
type Server struct {
	// Delay is how long a Slow answer takes; 30 s.
	Delay time.Duration
	// RetryAfter is what RateLimited requests; 7 s.
	RetryAfter time.Duration

	answer func(Prompt) string
	url    string // with a slash at the end
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	done   chan struct{} // closed when the server stops

	written   atomic.Int64 // bytes of endless answers
	elsewhere atomic.Int64 // requests where a redirect points

	mu      sync.Mutex // guards the fields below
	script  []Mode
	prompts []Prompt
}

// Start serves on 127.0.0.1 until the test ends. A nil answer returns "ok".
func Start(t testing.TB, answer func(Prompt) string) *Server {
	s, stop := Open(answer)
	t.Cleanup(stop)
	return s
}

// StartPipe serves over [net.Pipe] until the test ends: in a bubble of
// [testing/synctest] its time is fake.
func StartPipe(t testing.TB, answer func(Prompt) string) *Server {
	s := newServer(answer)
	l := &listener{conns: make(chan net.Conn), done: s.done}
	h := &http.Server{Handler: s, ReadHeaderTimeout: time.Hour}
	s.url, s.dial = "http://model.test/", l.dial
	var served sync.WaitGroup
	served.Go(func() { _ = h.Serve(l) })
	t.Cleanup(func() {
		close(s.done)
		_ = h.Close()
		served.Wait()
	})
	return s
}

func newServer(answer func(Prompt) string) *Server {
	if answer == nil {
		answer = func(Prompt) string { return "ok" }
	}
	return &Server{
		Delay: 30 * time.Second, RetryAfter: 7 * time.Second,
		answer: answer, done: make(chan struct{}), script: []Mode{Good},
	}
}

// Config reaches the server in a dialect, with defaults for all the rest.
func (s *Server) Config(d Dialect) provider.Config {
	c := provider.Config{Key: Key, BaseURL: s.url, Dial: s.dial}
	switch d {
	case OpenAI:
		c.Provider, c.Model = provider.OpenAI, "gpt-test"
		c.BaseURL += "v1"
	case Anthropic:
		c.Provider, c.Model = provider.Anthropic, "claude-test"
	case Google:
		c.Provider, c.Model = provider.Google, "gemini-test"
	}
	return c
}

// URL is where the server is, with a slash at the end.
func (s *Server) URL() string { return s.url }

// Script sets the modes of the calls to come; the last one stays.
func (s *Server) Script(first Mode, then ...Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append([]Mode{first}, then...)
}

// Calls is how many calls came, good and bad.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.prompts)
}

// Prompts are the calls that came, oldest first.
func (s *Server) Prompts() []Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.prompts)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/elsewhere") {
		s.elsewhere.Add(1)
		return
	}
	p, ok := readPrompt(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.behave(w, r, s.next(p), p)
}

// next records a prompt and returns how to answer it.
func (s *Server) next(p Prompt) Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = append(s.prompts, p)
	m := s.script[0]
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	return m
}

// listener hands out the far ends of pipes.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]; the server's end closes it.
func (l *listener) Close() error { return nil }

// Addr implements [net.Listener]; no caller dials it.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Net: "pipe", Name: "summarizetest"} }

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	far, near := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
