package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"compactd/examples/agenttest"
)

// The time that a gateway adds to a call, as the difference to the same call without one: 100 of them
// a second, of 20 conversations that grow to 50 messages.
func TestGatewayLatency(t *testing.T) {
	if !needed("latency") {
		t.Skip("SKIPPED: make gateway runs it")
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"Yes."}}],"usage":{"prompt_tokens":9}}`)
	}))
	defer provider.Close()
	_, worker := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
	_, gateway := newGateway(t, "http://"+worker, provider.URL, agenttest.StrictWindow)
	const calls, conversations = 1000, 20
	type message map[string]string
	histories := make([][]message, conversations)
	var mu sync.Mutex // guards direct and added
	var direct, added []time.Duration
	var running sync.WaitGroup
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range calls {
		<-tick.C
		at := i % conversations
		histories[at] = append(histories[at], message{"role": "user", "content": fmt.Sprintf("Question %d of %d. %s", i, at, strings.Repeat("And more. ", 40))},
			message{"role": "assistant", "content": "Yes."})
		body, err := json.Marshal(map[string]any{"model": "gpt-4", "user": fmt.Sprint(at), "messages": histories[at][:len(histories[at])-1]})
		must(t, err)
		running.Go(func() {
			without, with := timed(t, provider.URL, body), timed(t, gateway, body)
			mu.Lock()
			defer mu.Unlock()
			direct, added = append(direct, without), append(added, with-without)
		})
	}
	running.Wait()
	slices.Sort(direct)
	slices.Sort(added)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	fmt.Printf("gateway latency calls=%d rate=100 direct_p50_ms=%.1f direct_p99_ms=%.1f added_p50_ms=%.1f added_p99_ms=%.1f\n",
		calls, ms(direct[calls/2]), ms(direct[calls*99/100]), ms(added[calls/2]), ms(added[calls*99/100]))
}

// timed is how long a call takes.
func timed(t *testing.T, at string, body []byte) time.Duration {
	began := time.Now()
	answer, err := http.Post(at+"/v1/chat/completions", "application/json", bytes.NewReader(body)) //nolint:noctx // it is a test
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Error(answer.Status, err)
	}
	return time.Since(began)
}
