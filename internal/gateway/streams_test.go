package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"compactd/internal/gateway"
)

// A stream that is open costs a gateway less than 200 KB, whatever the size of its request.
func TestManyStreams(t *testing.T) {
	const streams = 1000
	done := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"a"}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-done
	}))
	defer provider.Close()
	defer close(done)
	direct := openStreams(t, provider.URL, streams)
	through := openStreams(t, newGateway(t, provider.URL, gateway.Config{Worker: &recorder{}}), streams)
	cost := (through - direct) / streams
	if t.Logf("a stream costs %d KB directly, and %d KB more through a gateway", direct/streams>>10, cost>>10); cost > 200<<10 {
		t.Errorf("%d bytes", cost)
	}
}

// openStreams opens streams, and returns the memory that they use while they are open.
func openStreams(t *testing.T, at string, n int) int64 {
	t.Helper()
	before := inUse()
	body := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"` + strings.Repeat("x", 100<<10) + `"},{"role":"user","content":"b"}],"stream":true}`
	client := &http.Client{Transport: &http.Transport{}}
	var opened sync.WaitGroup
	limit := make(chan struct{}, 64) // requests that are sent at once
	for range n {
		opened.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
				t.Error(fmt.Errorf("%q: %w", line, err))
			}
		})
	}
	opened.Wait()
	return inUse() - before
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
