package storelimit_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
)

// A tenant that stores all it can leaves room for others, and ends and erases its sessions in a log
// that is full of its turns.
func TestStorageOfATenant(t *testing.T) {
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesLog: 8 << 20})
	r, e := env.RunEdge()
	filled := func(token, tenant string) (bytes int) {
		text := strings.Repeat("x", 256<<10)
		for n := 1; ; n++ {
			body := fmt.Sprintf(`{"turn":%d,"messages":[{"role":"user","content":"%s"}]}`, n, text)
			status, answer := e.Do(token, http.MethodPost, "/v1/sessions/"+tenant+"/s1/turns?wait_ms=0", body)
			switch {
			case status == http.StatusInsufficientStorage && strings.Contains(answer, string(events.CodeStorageLimit)):
				return bytes
			case status >= http.StatusBadRequest:
				t.Fatalf("turn %d of %s: %d %s", n, tenant, status, answer)
			}
			bytes += len(body)
		}
	}
	hostile := filled(workertest.AcmeToken, "acme")
	env.AwaitDecided()
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	_, e = env.RunEdge() // it counts what is stored
	for n := 1; ; n++ {
		body := fmt.Sprintf(`{"turn":%d,"messages":[{"role":"user","content":"hi"}]}`, n)
		if status, _ := e.Do(workertest.AcmeToken, http.MethodPost, "/v1/sessions/acme/s2/turns?wait_ms=0", body); status == http.StatusInsufficientStorage {
			break
		}
		if n == 10_000 {
			t.Fatal("after a restart the tenant stores more")
		}
	}
	good := filled(workertest.DefaultToken, "default")
	if t.Logf("%d KiB of one tenant, %d of the next", hostile>>10, good>>10); hostile > 8<<20*4/5 || good < 8<<20/10 {
		t.Errorf("%d and %d bytes of 8 MiB", hostile, good)
	}
	for _, verb := range []string{"rewind", "end"} {
		if status, answer := e.Do(workertest.AcmeToken, http.MethodPost, "/v1/sessions/acme/s1/"+verb, `{"generation":0}`); status >= 500 {
			t.Errorf("%s: %d %s", verb, status, answer)
		}
	}
	if status, answer := e.Do(workertest.OperatorToken, http.MethodPost, "/v1/sessions/acme/s1/forget", "{}"); status >= 400 {
		t.Errorf("erase: %d %s", status, answer)
	}
}
