package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"compactd/client"
	"compactd/examples/agenttest"
	"compactd/internal/gateway"
)

// deadline is how long a test waits for an event of the network.
const deadline = time.Minute

// longHistory is a call that is recorded, with as many answers behind its first prompt.
func longHistory(answers int) string {
	text := `{"role":"assistant","content":"` + strings.Repeat("There is more to say about it. ", 40) + `"},{"role":"user","content":"And then?"}`
	return `{"model":"a-model","stream":true,"messages":[{"role":"user","content":"Begin."},` + strings.Join(slices.Repeat([]string{text}, answers), ",") + `]}`
}

// send sends a call, and returns its answer.
func send(ctx context.Context, t *testing.T, at, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// within waits for an event.
func within(t *testing.T, event <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(deadline):
		t.Fatal(what + " within a minute")
	}
}

// content is an event of a stream.
func content(text string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` + "\n\n"
}

func streams(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// An agent that goes away ends its request upstream, before the answer and in the middle of a stream.
func TestAgentAborts(t *testing.T) {
	for name, begins := range map[string]bool{"hang": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			came, ended := make(chan struct{}), make(chan struct{})
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if begins {
					streams(w, content("a"))
				}
				close(came)
				<-r.Context().Done()
				close(ended)
			}))
			defer provider.Close()
			at := newGateway(t, provider.URL, gateway.Config{Worker: &recorder{}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/v1/chat/completions", strings.NewReader(longHistory(1)))
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan struct{})
			go func() {
				defer close(failed)
				answer, err := http.DefaultClient.Do(r)
				if err == nil {
					_, err = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
				if err == nil {
					t.Error("the call has an answer")
				}
			}()
			within(t, came, "the call is not upstream")
			cancel()
			within(t, failed, "the agent has no error")
			within(t, ended, "the request upstream has not ended")
		})
	}
}

// A stream that drips arrives as it comes: each part before the next one is sent.
func TestDrips(t *testing.T) {
	const parts = 50
	next := make(chan struct{})
	text := content("one") + content("two") + "data: [DONE]\n\n"
	step := len(text)/parts + 1
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		streams(w, content("begin")) // held back until here
		for rest := text; rest != ""; {
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
			n := min(step, len(rest))
			streams(w, rest[:n])
			rest = rest[n:]
		}
	}))
	defer provider.Close()
	answer := send(t.Context(), t, newGateway(t, provider.URL, gateway.Config{Worker: &recorder{}}), longHistory(1))
	read := func(n int) string {
		b := make([]byte, n)
		if _, err := io.ReadFull(answer.Body, b); err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := read(len(content("begin"))); got != content("begin") {
		t.Fatalf("%q", got)
	}
	for rest := text; rest != ""; {
		next <- struct{}{}
		n := min(step, len(rest))
		if got := read(n); got != rest[:n] {
			t.Fatalf("%q, want %q", got, rest[:n])
		}
		rest = rest[n:]
	}
}

// A connection that is reset in a stream is no end of the stream: the agent has what came, and an error.
func TestReset(t *testing.T) {
	read := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		streams(w, content("a"))
		<-read
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}))
	defer provider.Close()
	answer := send(t.Context(), t, newGateway(t, provider.URL, gateway.Config{Worker: &recorder{}}), longHistory(1))
	body := bufio.NewReader(answer.Body)
	if line, err := body.ReadString('\n'); err != nil || line+"\n" != content("a") {
		t.Errorf("%q, %v", line, err)
	}
	close(read)
	if rest, err := io.ReadAll(body); err == nil {
		t.Errorf("the stream ended with %q", rest)
	}
}

// Errors of a provider are passed as they are, once: they are the agent's to handle.
func TestErrorsPass(t *testing.T) {
	for _, c := range []struct {
		status     int
		retryAfter string
		body       string
	}{
		{http.StatusInternalServerError, "", `{"error":{"message":"The server had an error"}}`},
		{http.StatusTooManyRequests, "17", `{"error":{"message":"Rate limit reached","type":"tokens"}}`},
		{http.StatusServiceUnavailable, "Fri, 31 Dec 2027 23:59:59 GMT", "<html>busy</html>"},
		{529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		{http.StatusUnauthorized, "", `{"error":{"message":"Incorrect API key provided"}}`},
		{http.StatusBadRequest, "", `{"error":{"message":"Unknown parameter: 'x'"}}`},
		{http.StatusOK, "", "data: {broken\n\ndata"},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			var calls atomic.Int64
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer provider.Close()
			at := newGateway(t, provider.URL, gateway.Config{Worker: agenttest.HTTP(t), Model: client.Model{ContextWindow: window, MaxOutputTokens: 256}})
			answer := send(t.Context(), t, at, longHistory(1))
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != c.status || string(body) != c.body || answer.Header.Get("Retry-After") != c.retryAfter || calls.Load() != 1 {
				t.Errorf("%d calls, %s, Retry-After %q, %s, %v", calls.Load(), answer.Status, answer.Header.Get("Retry-After"), body, err)
			}
		})
	}
}

// A call that is refused as too long inside a stream is sent again, and the agent gets the second stream
// alone.
func TestRefusedInStream(t *testing.T) {
	refusal := `data: {"error":{"message":"This model's maximum context length is 2000 tokens. However, your messages resulted in 4000 tokens.","code":"context_length_exceeded"}}` + "\n\n"
	var sizes []int
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if sizes = append(sizes, len(body)); len(sizes) == 1 {
			streams(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`+"\n\n"+refusal)
			return
		}
		streams(w, content("fits")+"data: [DONE]\n\n")
	}))
	defer provider.Close()
	at := newGateway(t, provider.URL, gateway.Config{Worker: agenttest.HTTP(t), Model: client.Model{ContextWindow: 100_000, MaxOutputTokens: 256}})
	answer := send(t.Context(), t, at, longHistory(12))
	body, err := io.ReadAll(answer.Body)
	if want := content("fits") + "data: [DONE]\n\n"; err != nil || string(body) != want || len(sizes) != 2 || sizes[1]*2 > sizes[0] {
		t.Errorf("calls of %v bytes, %q, %v", sizes, body, err)
	}
	if answer.Header.Get("X-Compactd-Changed") != "true" {
		t.Errorf("%v", answer.Header)
	}
}

// A body of 32 MiB, the largest that is read, arrives as it is where no worker answers in time.
func TestLargestBody(t *testing.T) {
	const size = 32 << 20
	begin, end := `{"model":"a-model","messages":[{"role":"user","content":"Begin."},{"role":"assistant","content":"`, `"},{"role":"user","content":"And then?"}]}`
	body := []byte(begin + strings.Repeat("x", size-len(begin)-len(end)) + end)
	got := make(chan [sha256.Size]byte, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var data bytes.Buffer
		if _, err := data.ReadFrom(r.Body); err != nil || r.ContentLength != size {
			t.Errorf("%d bytes, %v", r.ContentLength, err)
		}
		got <- sha256.Sum256(data.Bytes())
		_, _ = io.WriteString(w, `{"choices":[]}`)
	}))
	defer provider.Close()
	at := newGateway(t, provider.URL, gateway.Config{Worker: agenttest.HTTP(t), Budget: time.Millisecond})
	if answer := send(t.Context(), t, at, string(body)); answer.StatusCode != http.StatusOK {
		t.Error(answer.Status)
	}
	if sum := <-got; sum != sha256.Sum256(body) {
		t.Error("the provider got another body")
	}
}
