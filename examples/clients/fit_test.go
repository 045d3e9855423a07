package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"compactd/internal/testkit/freeport"
	"compactd/internal/testkit/strict"
)

// chat is a provider that takes 16,384 tokens, and histories that are valid. Each answer is one
// call of a tool.
type chat struct {
	mu      sync.Mutex
	calls   int
	most    int // tokens of a call
	refused []string
	at      func(call int)
}

const (
	chatWindow = 16_384
	chatOutput = 1_024
)

func (c *chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Messages []json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.at != nil {
		c.at(c.calls)
	}
	tokens := 0
	for _, m := range in.Messages {
		tokens += len(m)/4 + 4
	}
	c.most = max(c.most, tokens)
	for _, bad := range strict.Refuse(strict.Call{Provider: "openai", Model: "gpt-4", Messages: in.Messages}) {
		c.refused = append(c.refused, bad.String())
	}
	if tokens > chatWindow-chatOutput {
		c.refused = append(c.refused, fmt.Sprintf("call %d has %d tokens", c.calls, tokens))
	}
	_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"f%d.go\"}"}}]}}]}`, c.calls, c.calls)
}

// worker is a process of its own, with all that it keeps in a directory.
type worker struct {
	t    *testing.T
	bin  string
	args []string
	cmd  *exec.Cmd
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

// An agent in 15 lines of Python, without any package, makes 60 steps of 700 tokens each in a
// window of 16,384: no call is refused, also when the worker is killed and started again.
func TestFit(t *testing.T) {
	if exec.CommandContext(t.Context(), "python3", "--version").Run() != nil {
		if slices.Contains(strings.Split(*need, ","), "python") {
			t.Fatal("it needs python3")
		}
		fmt.Printf("\n** THE AGENT WITHOUT PACKAGES WAS NOT RUN: it needs python3\n\n")
		t.Skip("SKIPPED: it needs python3")
	}
	text, err := os.ReadFile("../python/fit.py")
	must(t, err)
	lines := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		if s := strings.TrimSpace(line); s != "" && !strings.HasPrefix(s, `"""`) {
			lines++
		}
	}
	if lines > 15 {
		t.Errorf("the agent has %d lines", lines)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "worker")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", bin, "compactd/cmd/worker").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	at, err := freeport.Address()
	must(t, err)
	tokens := filepath.Join(dir, "tokens")
	must(t, os.WriteFile(tokens, fmt.Appendf(nil, "%x default agent\n", sha256.Sum256([]byte("a-token"))), 0o600))
	w := &worker{t: t, bin: bin, args: []string{"--data", filepath.Join(dir, "data"), "--http", "off", "--agents", at, "--agents-tokens", tokens, "--listen", "127.0.0.1:-1"}}
	w.start()
	t.Cleanup(func() { w.kill() })
	provider := &chat{at: func(call int) {
		if call == 25 || call == 50 {
			w.kill()
			w.start()
		}
	}}
	server := httptest.NewServer(provider)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-B", "../python/fit.py")
	cmd.Env = append(os.Environ(), "TOKEN=a-token", "STEPS=60", "SYNC=http://"+at+"/v1/sessions/default/fit/sync", "CHAT="+server.URL,
		fmt.Sprintf(`MODEL={"provider":"openai","name":"gpt-4","context_window":%d,"max_output_tokens":%d}`, chatWindow, chatOutput))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, w.cmd.Stderr)
	}
	provider.mu.Lock()
	defer provider.mu.Unlock()
	fmt.Printf("%s: %d lines, %d calls, %d refused, at most %d tokens of %d\n", t.Name(), lines, provider.calls, len(provider.refused), provider.most, chatWindow)
	if provider.calls != 60 || len(provider.refused) > 0 || provider.most < chatWindow/2 {
		t.Errorf("%d calls, refused: %v", provider.calls, provider.refused)
	}
}
