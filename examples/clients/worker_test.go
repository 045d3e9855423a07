package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

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

// restarted starts a worker that is killed and started again at a call, and killed a second time for
// some calls: at is for each call of a provider.
func restarted(t *testing.T) (url string, at func(call int)) {
	t.Helper()
	w, addr := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
	return "http://" + addr, func(call int) {
		switch call {
		case 20:
			w.kill()
			w.start()
		case 40:
			w.kill()
		case 45:
			w.start()
			awaitServed(t, addr)
		case 22:
			awaitServed(t, addr)
		}
	}
}

// programs is a directory for what is built once for all tests.
var programs string

// Agents wait more than they work: they run side by side, whatever the processors are, if -parallel
// does not say how many.
func TestMain(m *testing.M) {
	err := flag.Set("test.parallel", "6")
	if err != nil {
		panic(err)
	}
	flag.Parse()
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

// awaitServed waits until the worker at an address answers for the session fit: a model takes longer
// for a few answers than a worker for its start or for the sessions of another one, that of a test
// does not.
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
