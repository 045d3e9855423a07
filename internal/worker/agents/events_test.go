package agents_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"compactd/internal/testkit/workertest"
)

// A reader gets each outcome of its session once, in the order of the stream, with its sequence
// as the id, however often it comes back with the id of its last event.
func TestAgentsEvents(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	all, stop := e.Follow("s1", "")
	defer stop()
	begin := (<-all).ID // where it begins, so that a reader that got nothing yet can come back
	for n := 1; n <= 30; n++ {
		if status, got := e.Post("s1", "turns", string(workertest.Turn(n))); status != 200 {
			t.Fatalf("turn %d: %d %+v", n, status, got)
		}
		e.Post("s2", "turns", string(workertest.Turn(n)))
	}
	e.Post("s1", "turns", `{"turn":1,"messages":[{"role":"user","content":"conflict"}]}`)
	env.AwaitDecided()
	want := env.EventsOf("s1")
	if len(want) < 5 {
		t.Fatalf("the session has only %d outcomes", len(want))
	}
	for i, w := range want {
		if got := workertest.NextEvent(t, all); got != w {
			t.Fatalf("event %d is %.100v, want %.100v", i, got, w)
		}
	}
	for at, after := -1, begin; at < len(want); at++ {
		if at >= 0 {
			after = want[at].ID
		}
		rest, stop := e.Follow("s1", after)
		for _, w := range want[at+1:] {
			if got := workertest.NextEvent(t, rest); got != w {
				t.Fatalf("after %s: %.100v, want %.100v", after, got, w)
			}
		}
		stop()
		if at == len(want)-1 {
			break
		}
	}
	for _, bad := range []struct{ after, want string }{{"x", "400"}, {"-1", "400"}, {"999999999", "410"}} {
		if status, text := e.Do(workertest.DefaultToken, "GET", "/v1/sessions/default/s1/events?after="+bad.after, ""); fmt.Sprint(status) != bad.want {
			t.Errorf("after %s: %d %s", bad.after, status, text)
		}
	}
}

// A reader that reconnects all the time, while outcomes come, gets each once.
func TestAgentsEventsResumeWhileTheyCome(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	first, stop := e.Follow("s1", "")
	last := (<-first).ID
	stop()
	published := make(chan struct{})
	go func() {
		defer close(published)
		for n := 1; n <= 60; n++ {
			e.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/s1/turns", string(workertest.Turn(n)))
		}
	}()
	var got []workertest.Event
	for ended := false; ; {
		received, stop := e.Follow("s1", last)
		for range 3 { // with its first sign of life
			select {
			case one := <-received:
				if last = one.ID; one.Name != "" {
					got = append(got, one)
				}
				continue
			case <-published:
				ended = true
			}
			break
		}
		stop()
		if ended {
			break
		}
	}
	env.AwaitDecided()
	want := env.EventsOf("s1")
	rest, stop := e.Follow("s1", last)
	for len(got) < len(want) {
		got = append(got, workertest.NextEvent(t, rest))
	}
	stop()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("event %d of %d is %.60v, want %.60v", i, len(want), got[i], want[i])
		}
	}
	t.Logf("%d outcomes", len(want))
}

// A token that is removed from the file ends its streams and its requests; one that is added is
// taken; a file with an error changes nothing.
func TestAgentsTokensReload(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	received, _ := e.Follow("s1", "")
	<-received
	e.WriteTokens("nonsense\n")
	if err := e.Listener.Reload(); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a bad file: %v", err)
	}
	if status, _ := e.Do(workertest.DefaultToken, "GET", "/v1/sessions", ""); status != 200 {
		t.Errorf("with a bad file: %d", status)
	}
	e.WriteTokens(workertest.TokenLine("new-token", "default agent"))
	for range received { // ends once the change is seen, without a request for it
	}
	if status, _ := e.Do(workertest.DefaultToken, "GET", "/v1/sessions", ""); status != 401 {
		t.Errorf("the removed token: %d", status)
	}
	if status, _ := e.Do("new-token", "GET", "/v1/sessions", ""); status != 200 {
		t.Errorf("the new token: %d", status)
	}
}

// A reader that does not read is cut, and holds no memory of the worker: others get every event.
func TestAgentsSlowReaderIsCut(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	conn, err := net.Dial("tcp", e.Listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(workertest.WaitLimit)); err != nil {
		t.Fatal(err)
	}
	// Little, but more than one packet: else the kernel drains 8 KB in 200 ms.
	if err := conn.(*net.TCPConn).SetReadBuffer(128 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /v1/sessions/default/s1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", workertest.DefaultToken)
	if _, err := conn.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	good, stop := e.Follow("s1", "")
	defer stop()
	text := strings.Repeat("a word of many ", 2_000)
	for n := 1; n <= 10; n++ {
		e.Post("s1", "turns", fmt.Sprintf(`{"turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":60000},"messages":[{"role":"user","content":%q}]}`, n, text))
	}
	for n := range 20 { // each makes a compaction of the whole history: more than sockets hold
		e.Post("s1", "rewind?wait_ms=8000", fmt.Sprintf(`{"generation":%d}`, n%2))
	}
	for range 300 { // each is refused: more than the worker remembers for a reader
		e.Post("s1", "rewind?wait_ms=0", `{"generation":1000}`)
	}
	all := env.EventsOf("s1")
	size := 0
	for _, one := range all {
		size += len(one.Data)
	}
	t.Logf("%d outcomes of %d bytes", len(all), size)
	if err := conn.SetDeadline(time.Now().Add(workertest.WaitLimit)); err != nil { // what came before took its own time
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the reader that does not read was not cut: %v", err)
	}
	for _, w := range env.EventsOf("s1") {
		if got := workertest.NextEvent(t, good); got != w {
			t.Fatalf("the reader that reads: %.60v, want %.60v", got, w)
		}
	}
}
