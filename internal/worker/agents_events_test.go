package worker_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// sse is one event of a stream.
type sse struct{ id, event, data string }

// follow receives the events of a session of the tenant default, after one id; "" is now.
func (e *edge) follow(session, after string) (received <-chan sse, stop func()) {
	e.t.Helper()
	received, stop, err := follow(e.t, e.edge.Addr(), session, after)
	if err != nil {
		e.t.Fatal(err)
	}
	return received, stop
}

// follow is the same at any address; where nothing answers it is an error.
func follow(t *testing.T, addr, session, after string) (received <-chan sse, stop func(), err error) {
	t.Helper()
	session, query, _ := strings.Cut(session, "?")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/sessions/default/"+session+"/events?"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+defaultToken)
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	resp, err := new(http.Transport).RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		return nil, nil, fmt.Errorf("%s: %s", resp.Status, data)
	}
	out := make(chan sse, 1000)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 16<<20)
		var at sse
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				at.id = value
			case "event":
				at.event = value
			case "data":
				at.data += value
			case "":
				out <- at
				at = sse{}
			}
		}
	}()
	return out, func() { resp.Body.Close() }, nil
}

// named returns the next event that is no sign of life.
func named(t *testing.T, from <-chan sse) sse {
	t.Helper()
	for {
		select {
		case got, ok := <-from:
			if !ok {
				t.Fatal("the stream ended")
			}
			if got.event != "" {
				return got
			}
		case <-time.After(waitLimit):
			t.Fatal("no event came")
		}
	}
}

// A reader gets each outcome of its session once, in the order of the stream, with its sequence
// as the id, however often it comes back with the id of its last event.
func TestAgentsEvents(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	all, stop := e.follow("s1", "")
	defer stop()
	begin := (<-all).id // where it begins, so that a reader that got nothing yet can come back
	for n := 1; n <= 30; n++ {
		if status, got := e.post("s1", "turns", string(turn(n))); status != 200 {
			t.Fatalf("turn %d: %d %+v", n, status, got)
		}
		e.post("s2", "turns", string(turn(n)))
	}
	e.post("s1", "turns", `{"turn":1,"messages":[{"role":"user","content":"conflict"}]}`)
	env.awaitDecided()
	want := env.sseOf("s1")
	if len(want) < 5 {
		t.Fatalf("the session has only %d outcomes", len(want))
	}
	for i, w := range want {
		if got := named(t, all); got != w {
			t.Fatalf("event %d is %.100v, want %.100v", i, got, w)
		}
	}
	for at, after := -1, begin; at < len(want); at++ {
		if at >= 0 {
			after = want[at].id
		}
		rest, stop := e.follow("s1", after)
		for _, w := range want[at+1:] {
			if got := named(t, rest); got != w {
				t.Fatalf("after %s: %.100v, want %.100v", after, got, w)
			}
		}
		stop()
		if at == len(want)-1 {
			break
		}
	}
	for _, bad := range []struct{ after, want string }{{"x", "400"}, {"-1", "400"}, {"999999999", "410"}} {
		if status, text := e.do(defaultToken, "GET", "/v1/sessions/default/s1/events?after="+bad.after, ""); fmt.Sprint(status) != bad.want {
			t.Errorf("after %s: %d %s", bad.after, status, text)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// outcomesOf reads what a reader of a session is to get.
func (env *testEnv) sseOf(session string) (out []sse) {
	env.t.Helper()
	err := stream.ReadStream(env.t.Context(), env.js, topology.OutcomesStream, events.OutcomesFilter, 1, 0, func(m jetstream.Msg, seq uint64) error {
		at, err := events.ParseOutcome(m.Subject())
		if err == nil && at.Address.Session == session {
			out = append(out, sse{strconv.FormatUint(seq, 10), string(at.Kind), string(m.Data())})
		}
		return err
	})
	if err != nil {
		env.t.Fatal(err)
	}
	return out
}

// A reader that reconnects all the time, while outcomes come, gets each once.
func TestAgentsEventsResumeWhileTheyCome(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	first, stop := e.follow("s1", "")
	last := (<-first).id
	stop()
	published := make(chan struct{})
	go func() {
		defer close(published)
		for n := 1; n <= 60; n++ {
			e.do(defaultToken, "POST", "/v1/sessions/default/s1/turns", string(turn(n)))
		}
	}()
	var got []sse
	for ended := false; ; {
		events, stop := e.follow("s1", last)
		for range 3 { // with its first sign of life
			select {
			case one := <-events:
				if last = one.id; one.event != "" {
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
	env.awaitDecided()
	want := env.sseOf("s1")
	rest, stop := e.follow("s1", last)
	for len(got) < len(want) {
		got = append(got, named(t, rest))
	}
	stop()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("event %d of %d is %.60v, want %.60v", i, len(want), got[i], want[i])
		}
	}
	t.Logf("%d outcomes", len(want))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// A token that is removed from the file ends its streams and its requests; one that is added is
// taken; a file with an error changes nothing.
func TestAgentsTokensReload(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	events, _ := e.follow("s1", "")
	<-events
	e.write("nonsense\n")
	if err := e.edge.Reload(); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a bad file: %v", err)
	}
	if status, _ := e.do(defaultToken, "GET", "/v1/sessions", ""); status != 200 {
		t.Errorf("with a bad file: %d", status)
	}
	e.write(tokenLine("new-token", "default agent"))
	for range events { // ends once the change is seen, without a request for it
	}
	if status, _ := e.do(defaultToken, "GET", "/v1/sessions", ""); status != 401 {
		t.Errorf("the removed token: %d", status)
	}
	if status, _ := e.do("new-token", "GET", "/v1/sessions", ""); status != 200 {
		t.Errorf("the new token: %d", status)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// A reader that does not read is cut, and holds no memory of the worker: others get every event.
func TestAgentsSlowReaderIsCut(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	conn, err := net.Dial("tcp", e.edge.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	// Little, but more than one packet: else the kernel drains 8 KB in 200 ms.
	if err := conn.(*net.TCPConn).SetReadBuffer(128 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /v1/sessions/default/s1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", defaultToken)
	if _, err := conn.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	good, stop := e.follow("s1", "")
	defer stop()
	text := strings.Repeat("a word of many ", 2_000)
	for n := 1; n <= 10; n++ {
		e.post("s1", "turns", fmt.Sprintf(`{"turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":60000},"messages":[{"role":"user","content":%q}]}`, n, text))
	}
	for n := range 20 { // each makes a compaction of the whole history: more than sockets hold
		e.post("s1", "rewind?wait_ms=8000", fmt.Sprintf(`{"generation":%d}`, n%2))
	}
	for range 300 { // each is refused: more than the worker remembers for a reader
		e.post("s1", "rewind?wait_ms=0", `{"generation":1000}`)
	}
	all := env.sseOf("s1")
	size := 0
	for _, one := range all {
		size += len(one.data)
	}
	t.Logf("%d outcomes of %d bytes", len(all), size)
	if err := conn.SetDeadline(time.Now().Add(waitLimit)); err != nil { // what came before took its own time
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the reader that does not read was not cut: %v", err)
	}
	for _, w := range env.sseOf("s1") {
		if got := named(t, good); got != w {
			t.Fatalf("the reader that reads: %.60v, want %.60v", got, w)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
