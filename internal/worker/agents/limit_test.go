package agents_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// untilInTime sends a request again while the machine was too slow for it: a place that is refused has another code.
func untilInTime(e *workertest.Edge, method, path, body string) (status int, text string) {
	for late := time.Now().Add(workertest.WaitLimit); ; {
		status, text = e.Do(workertest.DefaultToken, method, path, body)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, limit.ErrBusy.Error()) || time.Now().After(late) {
			return status, text
		}
	}
}

// Requests beyond the places of a tenant wait for their turn. Requests that wait for an event hold
// none: syncs and reads go on meanwhile.
func TestReadsWaitTheirTurn(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e, l := env.RunLimitedEdge(0)
	for n := 1; n <= 20; n++ {
		e.Post("s", "turns", string(workertest.Turn(n)))
	}
	const path = "/v1/sessions/default/s"
	for range 40 { // of a turn that does not come
		e.Open("GET " + path + "/context?turn=999&wait_ms=8000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + workertest.DefaultToken + "\r\n\r\n")
	}
	l.Await(t, func() bool { return l.Held(limit.Waits) >= 40 })
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if status, text := untilInTime(e, "GET", path+"/recall?text=turn&limit=100", ""); status != 200 {
				t.Errorf("recall %d: %d %s", i, status, text)
			}
		})
		all.Go(func() {
			body := `{"model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"user","content":"hi"}]}`
			if status, text := untilInTime(e, "POST", fmt.Sprintf("/v1/sessions/default/own-%d/sync", i), body); status != 200 {
				t.Errorf("sync %d: %d %s", i, status, text)
			}
		})
	}
	all.Wait()
}

// A request waits for memory before it has a place of reads: those that have memory may wait for such a place.
func TestReadsWaitForNoMemory(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e, l := env.RunLimitedEdge(16 << 20)
	const path = "/v1/sessions/default/s"
	e.Post("s", "turns", `{"messages":[{"role":"user","content":"`+strings.Repeat("words ", 50_000)+`"}]}`)
	var taken []func()
	for n := int64(8 << 20); n > limit.Large; n /= 2 {
		if release, ok := l.TryHold(limit.Memory, limit.Account{Tenant: fmt.Sprint(n)}, n); ok {
			taken = append(taken, release)
		}
	}
	var all sync.WaitGroup
	for _, what := range []string{"/recall?text=nowhere", "/history", "/context"} {
		all.Go(func() {
			if status, text := e.Do(workertest.DefaultToken, "GET", path+what, ""); status != 200 {
				t.Errorf("%s: %d %.200s", what, status, text)
			}
		})
	}
	for range 30 {
		workertest.Pause(t, 10*time.Millisecond)
		if held := l.Held(limit.Reads); held > 0 {
			t.Errorf("%d places of reads are held while there is no memory", held)
			break
		}
	}
	for _, release := range taken {
		release()
	}
	all.Wait()
}

// The memory of a body counts until its answer has left, not until it was read.
func TestMemoryUntilAnswer(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e, l := env.RunLimitedEdge(64 << 20)
	body := `{"turn":999,"wait_ms":8000,"messages":[{"role":"user","content":"` + strings.Repeat("x", 3<<20) + `"}]}`
	c := e.Open(fmt.Sprintf("POST /v1/sessions/default/s/check HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", workertest.DefaultToken, len(body), body))
	l.Await(t, func() bool { return l.Held(limit.Waits) > 0 }) // it was decoded, and waits for its turn
	if held := l.Held(limit.Memory); held < 9<<20 {
		t.Errorf("%d bytes count for a body of 3 MiB that is decoded", held)
	}
	l.Await(t, func() bool { return l.Held(limit.Reads) == 0 }) // it looked for a refusal, and waits without a place
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	l.Await(t, func() bool { return l.Held(limit.Memory) == 0 })
}

// An outcome counts as memory while a follower does not read it, and no longer than its connection lasts.
func TestMemoryOfStuckFollowers(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e, l := env.RunLimitedEdge(0)
	first, stop := e.Follow("s", "")
	begin := (<-first).ID
	stop()
	text := strings.Repeat("a word of many ", 2_000)
	for n := 1; n <= 10; n++ {
		e.Post("s", "turns", fmt.Sprintf(`{"turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":60000},"messages":[{"role":"user","content":%q}]}`, n, text))
	}
	for n := range 20 { // each makes a compaction of the whole history: more than sockets hold
		e.Post("s", "rewind?wait_ms=8000", fmt.Sprintf(`{"generation":%d}`, n%2))
	}
	l.Await(t, func() bool { return l.Held(limit.Memory) == 0 && l.Held(limit.Streams) == 0 })
	c := e.Open("")
	if err := c.(*net.TCPConn).SetReadBuffer(128 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /v1/sessions/default/s/events?after=%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", begin, workertest.DefaultToken)
	l.Await(t, func() bool { return l.Held(limit.Memory) > limit.Large && l.Held(limit.CatchUps) == 0 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	l.Await(t, func() bool { return l.Held(limit.Memory) == 0 && l.Held(limit.Streams) == 0 })
}

// Originals count as memory, and the search for one by its hash takes a processor.
func TestMemoryOfOriginals(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	var memory, processor atomic.Int64
	env.Limiter = limit.New(limit.Config{OnChange: func(c limit.Class, held int64) {
		switch c {
		case limit.Memory:
			memory.Store(max(memory.Load(), held))
		case limit.Processor:
			processor.Store(max(processor.Load(), held))
		default:
		}
	}})
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, func(c *agents.Config) { c.Limiter = env.Limiter })
	text := strings.Repeat("words ", 200_000)
	_, stored := e.Post("s", "turns", `{"turn":1,"messages":[{"role":"user","content":"`+text+`"}]}`)
	env.AwaitDecided()
	for path, status := range map[string]int{
		"/v1/sessions/default/s/recall?turn=1":                      200,
		"/v1/retrieve/" + events.ContentHash(stored.Seq, text):      200,
		"/v1/retrieve/" + events.ContentHash(stored.Seq, "no text"): 404,
	} {
		memory.Store(0)
		processor.Store(0)
		if got, answer := e.Do(workertest.DefaultToken, "GET", path, ""); got != status {
			t.Errorf("%s: %d %.200s", path, got, answer)
		}
		if n := memory.Load(); n < int64(len(text))*limit.PerByte {
			t.Errorf("%s: %d bytes count", path, n)
		}
		if processor.Load() == 0 {
			t.Errorf("%s took no processor", path)
		}
	}
}

// Of large events, and of rewinds of large sessions, no more are undecided at a time than may compute
// for long, whether their agents wait for the decision or not.
func TestFewUndecided(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	var most atomic.Int64
	l := limit.New(limit.Config{OnChange: func(c limit.Class, held int64) {
		for was := most.Load(); c == limit.Undecided && held > was && !most.CompareAndSwap(was, held); was = most.Load() {
		}
	}})
	env.Limiter = l
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, func(c *agents.Config) { c.Limiter = l })
	tiny := strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 4000), ",")
	var all sync.WaitGroup
	for s := range 4 {
		all.Go(func() {
			for n := range 6 {
				path := fmt.Sprintf("/v1/sessions/default/s%d/turns?wait_ms=%d", s, 8000*(n%2))
				if status, text := e.Do(workertest.DefaultToken, "POST", path, fmt.Sprintf(`{"turn":%d,"messages":[%s]}`, n+1, tiny)); status >= 300 {
					t.Errorf("%d %s", status, text)
				}
			}
			if status, text := e.Do(workertest.DefaultToken, "POST", fmt.Sprintf("/v1/sessions/default/s%d/rewind?wait_ms=8000", s), `{"generation":0}`); status >= 500 {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	all.Wait()
	if got, want := most.Load(), int64(max(runtime.GOMAXPROCS(0)-1, 1)); got < 1 || got > want {
		t.Errorf("%d are undecided at a time, want 1 to %d", got, want)
	}
	r.Stop()
	if held := l.Held(limit.Undecided); held > 0 {
		t.Errorf("%d places are held by none", held)
	}
}

// Connections that send a byte now and then deny no tenant a body, whatever they announce.
func TestDrippingRequests(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e, l := env.RunLimitedEdge(32 << 20)
	for _, length := range []string{"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "Content-Length: 33000000\r\n\r\n{"} {
		for range 20 {
			e.Open("POST /v1/compress HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + workertest.DefaultToken + "\r\n" + length)
		}
	}
	l.Await(t, func() bool { return l.Held(limit.Memory) > 0 })
	for token, tenant := range map[string]string{workertest.AcmeToken: "acme", workertest.DefaultToken: "default"} {
		body := `{"model":"gpt-4o","messages":[{"role":"user","content":"` + strings.Repeat("x", 1<<20) + `"}]}`
		if status, text := e.Do(token, "POST", "/v1/compress", body); status != 200 {
			t.Errorf("%s: %d %.200s", tenant, status, text)
		}
	}
}

// Bodies of a session's token that do not end leave its tenant its reads.
func TestUnfinishedBodiesOfSession(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e, _ := env.RunLimitedEdge(0)
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine(workertest.SessionToken, "default/s session"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	e.Post("s", "turns", string(workertest.Turn(1)))
	for range 40 {
		e.Open("POST /mcp/default/s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + workertest.SessionToken +
			"\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	}
	if status, text := e.Do(workertest.DefaultToken, "GET", "/v1/sessions/default/s/context", ""); status != 200 {
		t.Errorf("a read of the tenant: %d %s", status, text)
	}
	if s, err := e.MCP(workertest.SessionToken, "default", "s"); err != nil {
		t.Error(err)
	} else if text, bad := e.CallTool(s, "context_stats", nil); bad {
		t.Errorf("a tool of the session: %s", text)
	}
}

// A token that becomes one of a session loses its connections that receive events of others.
func TestTokenOfSessionReceivesNoEvents(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	c := e.Open("GET /v1/sessions/default/s/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + workertest.DefaultToken + "\r\n\r\n")
	in := bufio.NewReader(c)
	for line := ""; !strings.HasPrefix(line, "id:"); {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default/other session"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(workertest.WaitLimit))
	if rest, err := io.ReadAll(in); err != nil {
		t.Errorf("the connection stays: %q %v", rest, err)
	}
}

// Rewinds in a loop are answered with the history until the tenant got much of it; then the agent
// requests it. The worker refuses no request.
func TestRewindsInLoop(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	for n := 1; n <= 12; n++ {
		e.Post("s", "turns", fmt.Sprintf(`{"turn":%d,"model":{"provider":"openai","name":"gpt-4.1"},"messages":[{"role":"user","content":"%s"}]}`, n, strings.Repeat("words of a turn ", 16_000)))
	}
	if status, got := e.Post("s", "compact", `{}`); status != 200 || got.Context == nil {
		t.Fatalf("compact: %d %+v", status, got)
	}
	bytes, without := 0, 0
	for range 60 {
		status, text := e.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/s/rewind?wait_ms=100", `{"generation":0}`)
		if status != 200 && status != 202 {
			t.Fatalf("rewind: %d %.300s", status, text)
		}
		if bytes += len(text); len(text) < 64<<10 {
			without++
		}
	}
	if bytes > 110<<20 || without == 0 { // 32 MiB at once, and 8 MiB a second
		t.Errorf("%d bytes for 60 rewinds, %d without the history", bytes, without)
	}
}

// A request in chunks, which may have had a length too, is the last one of its connection.
func TestChunksEndConnection(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	for _, more := range []string{"", "Content-Length: 5\r\n"} {
		c := e.Open("POST /v1/sessions/default/s/end HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + workertest.DefaultToken + "\r\n" + more + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(workertest.WaitLimit))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil || !resp.Close {
			t.Errorf("%q: the connection stays open: %v", more, err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%q: the connection stays open", more)
		}
	}
}
