package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"compactd/examples/agenttest"
	"compactd/internal/broker/embedded"
	"compactd/internal/events"
	"compactd/internal/testkit/freeport"
)

// worker is a process of its own, with all that it keeps in a directory.
type worker struct {
	t    *testing.T
	bin  string
	args []string
	cmd  *exec.Cmd
}

// newWorker starts a worker with a token of an agent, and returns where its listener is.
func newWorker(t *testing.T, bin string, args ...string) (*worker, string) {
	t.Helper()
	dir := t.TempDir()
	at, err := freeport.Address()
	must(t, err)
	tokens := filepath.Join(dir, "tokens")
	must(t, os.WriteFile(tokens, fmt.Appendf(nil, "%x default agent\n", sha256.Sum256([]byte("a-token"))), 0o600))
	w := &worker{t: t, bin: bin, args: append([]string{"--data", filepath.Join(dir, "data"), "--http", "off", "--agents", at, "--agents-tokens", tokens}, args...)}
	w.start()
	t.Cleanup(func() { w.kill() })
	awaitServed(t, at)
	return w, at
}

func (w *worker) start() {
	w.cmd = exec.CommandContext(context.WithoutCancel(w.t.Context()), w.bin, w.args...)
	w.cmd.Stderr = &bytes.Buffer{}
	if err := w.cmd.Start(); err != nil {
		w.t.Error(err)
	}
}

// kill ends the process as kill -9 does.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// programs is a directory for what is built once for all tests.
var programs string

// Agents wait more than they work: they run side by side, whatever the processors are.
func TestMain(m *testing.M) {
	flag.Parse()
	err := flag.Set("test.parallel", "6")
	if err != nil {
		panic(err)
	}
	if programs, err = os.MkdirTemp("", "compactd-clients-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

var built = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(programs, "worker")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "compactd/cmd/worker").CombinedOutput() //nolint:noctx // it is for all tests
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
})

// buildWorker returns where the program is.
func buildWorker(t *testing.T) string {
	t.Helper()
	bin, err := built()
	must(t, err)
	return bin
}

// An agent in 45 lines of Python, without any package, makes 60 steps of 700 tokens each in a
// window of 16,384: no call is refused, also when the worker is killed and started again.
func TestFit(t *testing.T) {
	t.Parallel()
	lacksPython(t)
	text, err := os.ReadFile("../python/fit.py")
	must(t, err)
	lines := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		if s := strings.TrimSpace(line); s != "" && !strings.HasPrefix(s, `"""`) {
			lines++
		}
	}
	if lines > 45 {
		t.Errorf("the agent has %d lines", lines)
	}
	w, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
	fit(t, &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4", At: func(call int) {
		switch call {
		case 25, 50:
			w.kill()
			w.start()
		case 27, 52:
			awaitServed(t, at)
		}
	}}, at)
}

// awaitServed waits until the worker at an address answers for the session: a model takes longer
// for a few answers than a worker for its start or for the sessions of another one, this one does
// not.
func awaitServed(t *testing.T, at string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/v1/sessions/default/fit/context", nil)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer a-token")
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusNotFound {
				return
			}
		}
	}
	t.Error("the session is not served within a minute")
}

// fit runs the agent with a worker whose listener is at an address.
func fit(t *testing.T, p *agenttest.Strict, at string) {
	t.Helper()
	server := httptest.NewServer(p)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-B", "../python/fit.py")
	cmd.Env = append(os.Environ(), "TOKEN=a-token", "STEPS=60", "SYNC=http://"+at+"/v1/sessions/default/fit/sync", "CHAT="+server.URL+"/v1/chat/completions",
		fmt.Sprintf(`MODEL={"provider":"openai","name":"gpt-4","context_window":%d,"max_output_tokens":%d}`, agenttest.StrictWindow, agenttest.StrictOutput))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := p.Result()
	fmt.Printf("%s: %d calls, %d refused, at most %d tokens of %d\n", t.Name(), r.Calls, len(r.Refused), r.Most, agenttest.StrictWindow)
	if r.Calls != 60 || len(r.Refused) > 0 || r.Most < agenttest.StrictWindow/2 {
		t.Errorf("%d calls, refused: %v", r.Calls, r.Refused)
	}
}

// lacksPython skips the test where there is no Python.
func lacksPython(t *testing.T) {
	t.Helper()
	if exec.CommandContext(t.Context(), "python3", "--version").Run() == nil {
		return
	}
	if needed("python") {
		t.Fatal("it needs python3")
	}
	fmt.Printf("\n** THE AGENT WITHOUT PACKAGES WAS NOT RUN: it needs python3\n\n")
	t.Skip("SKIPPED: it needs python3")
}

// The same in a fleet of three: the workers are killed one after the other, the last of them is
// the agent's own and comes back.
func TestFitFleet(t *testing.T) {
	t.Parallel()
	lacksPython(t)
	broker, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "-1"})
	must(t, err)
	t.Cleanup(broker.Stop)
	bin := buildWorker(t)
	var fleet [3]*worker
	var at string
	for i := range fleet {
		fleet[i], at = newWorker(t, bin, "--nats", broker.ClientURL(), "--lease-ttl", "2s")
	}
	p := &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4", At: func(call int) {
		switch call {
		case 15, 30:
			fleet[call/15-1].kill()
		case 45:
			fleet[2].kill()
			fleet[2].start()
		case 17, 32, 47:
			awaitServed(t, at)
		}
	}}
	fit(t, p, at)
}
