package exchanges

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"compactd/internal/events"
)

// Options are the settings of an adapter in a file.
type Options struct {
	Session string       `json:"session"` // "" for none
	WaitMS  int64        `json:"wait_ms"` // absent: a minute, so that a slow machine is not a slow worker
	Model   events.Model `json:"model"`
}

// Setup is what an adapter is started with.
type Setup struct {
	Worker  string // where the worker is
	Token   string
	Options Options
	// OnProblem takes the code of each problem, OnCompacted the generation of each compaction.
	OnProblem   func(code string)
	OnCompacted func(generation int64)
}

const (
	token = "a-token"
	key   = "Bearer a-provider-key" // in each request of an agent that has no other
)

// Run runs each file of a directory against a wire adapter.
func Run(t *testing.T, dir string, start func(Setup) http.RoundTripper) {
	t.Helper()
	runFiles(t, dir, func(s Setup) actor { return wire{start(s)} })
}

// actor is an agent with its adapter.
type actor interface {
	// act does what a step begins with, and compares what comes of it.
	act(ctx context.Context, p *player)
}

func runFiles(t *testing.T, dir string, start func(Setup) actor) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			s, err := read(file)
			if err != nil {
				t.Fatal(err)
			}
			newPlayer(t, s, start).run(s)
		})
	}
}

// player is the worker and the provider of an adapter.
type player struct {
	t        *testing.T
	worker   *httptest.Server
	provider *httptest.Server
	setup    Setup
	start    func(Setup) actor

	mu        sync.Mutex // guards the fields below
	step      *step
	at        int    // events of the step that have come
	responded string // the bytes that the provider answered last
	abort     context.CancelFunc
	known     map[string][]json.RawMessage // histories, by the hash of their answer
	problems  []string
	compacted []int64
}

func newPlayer(t *testing.T, s *script, start func(Setup) actor) *player {
	t.Helper()
	p := &player{t: t, start: start, known: map[string][]json.RawMessage{}}
	p.worker, p.provider = httptest.NewServer(http.HandlerFunc(p.serveWorker)), httptest.NewServer(http.HandlerFunc(p.serveProvider))
	t.Cleanup(p.worker.Close)
	t.Cleanup(p.provider.Close)
	p.setup = Setup{
		Worker: p.worker.URL, Token: token, Options: Options{WaitMS: time.Minute.Milliseconds()},
		OnProblem: func(code string) { p.mu.Lock(); defer p.mu.Unlock(); p.problems = append(p.problems, code) },
		OnCompacted: func(generation int64) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.compacted = append(p.compacted, generation)
		},
	}
	if s.options != "" {
		if err := json.Unmarshal([]byte(s.options), &p.setup.Options); err != nil {
			t.Fatalf("options: %v", err)
		}
	}
	return p
}

func (p *player) run(s *script) {
	p.t.Helper()
	agent := p.start(p.setup)
	for i := range s.steps {
		if s.steps[i].restart {
			agent = p.start(p.setup)
		}
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
		p.mu.Lock()
		p.step, p.at, p.problems, p.compacted, p.abort = &s.steps[i], 0, nil, nil, cancel
		p.mu.Unlock()
		agent.act(ctx, p)
		cancel()
		p.finish()
		if p.t.Failed() {
			return
		}
	}
}

// wire is an agent behind a wire adapter.
type wire struct{ adapter http.RoundTripper }

// act sends the request of the step, and compares the response.
func (a wire) act(ctx context.Context, p *player) {
	p.t.Helper()
	in := p.step.request.message()
	method, path, _ := strings.Cut(in.first, " ")
	r, err := http.NewRequestWithContext(ctx, method, p.provider.URL+path, strings.NewReader(in.body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header = in.header.Clone()
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", key)
	}
	answer, err := a.adapter.RoundTrip(r)
	want, _ := p.step.result("response")
	if err != nil {
		if trim(want.text) != "error" {
			p.t.Fatalf("%s: %v", p.step.request, err)
		}
		return
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	got := string(data)
	if err != nil {
		got += "<cut>"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := trim(want.text); text != "" && text != "same" {
		m := want.message()
		if answer.StatusCode != m.status() || got != m.body {
			p.t.Errorf("%s: %d\n%s\nwant %d\n%s", want, answer.StatusCode, got, m.status(), m.body)
		}
	} else if got != p.responded {
		p.t.Errorf("%s:\n%s\nwant\n%s", p.step.request, got, p.responded)
	}
}

// finish compares what the step should have led to.
func (p *player) finish() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at < len(p.step.events) {
		p.t.Errorf("%s has not come", p.step.events[p.at])
	}
	problems, _ := p.step.result("problems")
	if want := strings.Fields(problems.text); !slices.Equal(p.problems, want) {
		p.t.Errorf("%s of %s: %v, want %v", problems.name, p.step.request, p.problems, want)
	}
	compacted, _ := p.step.result("compacted")
	if got := strings.Trim(fmt.Sprint(p.compacted), "[]"); got != trim(compacted.text) {
		p.t.Errorf("%s of %s: %q, want %q", compacted.name, p.step.request, got, trim(compacted.text))
	}
}

// next returns the next event, which must be of a kind.
func (p *player) next(kind string) (section, bool) {
	if p.at >= len(p.step.events) || p.step.events[p.at].name != kind {
		return section{}, false
	}
	p.at++
	return p.step.events[p.at-1], true
}

// come takes a request to one side. It returns the expected request and the answer.
func (p *player) come(w http.ResponseWriter, kind, reply string) (want, answer section, ok bool) {
	want, ok = p.next(kind)
	if ok {
		answer, ok = p.next(reply)
	}
	if !ok {
		p.t.Errorf("%s: a request to the %s was not expected", p.step.request, kind)
		w.WriteHeader(http.StatusNotImplemented)
	}
	return want, answer, ok
}

func (p *player) serveWorker(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body) // an aborted request counts too
	p.mu.Lock()
	want, answer, ok := p.come(w, "sync", "answer")
	if ok {
		p.compareSync(want, r, data)
	}
	abort := p.abort
	p.mu.Unlock()
	if !ok {
		return
	}
	m, text := answer.message(), trim(answer.text)
	switch {
	case text == "away":
		panic(http.ErrAbortHandler)
	case text == "abort":
		abort()
		<-r.Context().Done()
	case text == "hang":
		<-r.Context().Done()
	case m.status() > 0:
		w.WriteHeader(m.status())
		_, _ = io.WriteString(w, m.body)
	default:
		p.remember(data, text)
		_, _ = io.WriteString(w, text)
	}
}

// compareSync compares each member that is expected with that of a request; null is absent.
func (p *player) compareSync(want section, r *http.Request, data []byte) {
	if got := r.Header.Get("Authorization"); got != "Bearer "+token {
		p.t.Errorf("%s: the token is %q", want, got)
	}
	var got, expected map[string]any
	if err := json.Unmarshal([]byte(want.text), &expected); err != nil {
		p.t.Errorf("%s: %v", want, err)
	}
	if err := json.Unmarshal(p.whole(data), &got); err != nil {
		p.t.Errorf("%s: %v", want, err)
		return
	}
	_, path, _ := strings.Cut(r.URL.EscapedPath(), "/v1/sessions/")
	tenant, rest, _ := strings.Cut(path, "/")
	name, _ := url.PathUnescape(strings.TrimSuffix(rest, "/sync"))
	got["tenant"], got["session"] = tenant, name
	for member, value := range expected {
		if !reflect.DeepEqual(got[member], value) {
			text, _ := json.Marshal(got[member])
			p.t.Errorf("%s: %s is\n%s", want, member, text)
		}
	}
}

// whole replaces the prefix of a request by the messages that it stands for.
func (p *player) whole(data []byte) []byte {
	var in struct {
		Prefix *struct {
			Count int    `json:"count"`
			Hash  string `json:"hash"`
		} `json:"prefix"`
		Messages []json.RawMessage `json:"messages"`
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &in) != nil || json.Unmarshal(data, &members) != nil || in.Prefix == nil {
		return data
	}
	members["messages"], _ = json.Marshal(slices.Concat(p.known[in.Prefix.Hash][:in.Prefix.Count], in.Messages))
	delete(members, "prefix")
	out, _ := json.Marshal(members)
	return out
}

// remember keeps the history that an answer gives a hash.
func (p *player) remember(data []byte, answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var in struct {
		Messages []json.RawMessage `json:"messages"`
	}
	var out struct {
		Hash string `json:"hash"`
	}
	if json.Unmarshal(p.whole(data), &in) == nil && json.Unmarshal([]byte(answer), &out) == nil {
		p.known[out.Hash] = in.Messages
	}
}

func (p *player) serveProvider(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body) // of the adapter; compared below
	p.mu.Lock()
	want, answer, ok := p.come(w, "provider", "responds")
	if !ok {
		p.mu.Unlock()
		return
	}
	p.compareCall(want, r, string(data))
	m := answer.message()
	parts := []string{m.body}
	for chunk, ok := p.next("chunk"); ok; chunk, ok = p.next("chunk") {
		parts = append(parts, chunk.text)
	}
	if m.header.Get("Content-Encoding") == "gzip" {
		parts = compress(parts)
	}
	_, cut := p.next("cut")
	p.responded = strings.Join(parts, "")
	if cut {
		p.responded += "<cut>"
	}
	p.mu.Unlock()
	for name := range m.header {
		w.Header().Set(name, m.header.Get(name))
	}
	w.WriteHeader(m.status())
	for _, part := range parts {
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
	}
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// compress returns the parts of a body in gzip, each of which can be read when it has come.
func compress(parts []string) (out []string) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i, part := range parts {
		_, _ = io.WriteString(z, part)
		if _ = z.Flush(); i == len(parts)-1 {
			_ = z.Close()
		}
		out = append(out, b.String())
		b.Reset()
	}
	return out
}

// compareCall compares a request to the provider: its body by bytes, its headers with those of the
// agent, of which it accepts the encodings that Go can read.
func (p *player) compareCall(want section, r *http.Request, got string) {
	in := p.step.request.message()
	_, path, _ := strings.Cut(in.first, " ")
	body := trim(want.text)
	if body == "same" {
		body = in.body
	}
	if got != body {
		p.t.Errorf("%s:\n%s\nwant\n%s", want, got, body)
	}
	if r.URL.RequestURI() != path {
		p.t.Errorf("%s: the path is %s, want %s", want, r.URL.RequestURI(), path)
	}
	if encodings := in.header.Get("Accept-Encoding"); strings.Contains(encodings, "gzip") {
		in.header.Set("Accept-Encoding", "gzip")
	} else if encodings != "" {
		in.header.Set("Accept-Encoding", "identity")
	}
	for name := range in.header {
		if r.Header.Get(name) != in.header.Get(name) {
			p.t.Errorf("%s: %s is %q", want, name, r.Header.Get(name))
		}
	}
	if auth := in.header.Get("Authorization"); auth == "" && r.Header.Get("Authorization") != key {
		p.t.Errorf("%s: the key is %q", want, r.Header.Get("Authorization"))
	}
}
