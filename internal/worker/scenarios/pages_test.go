package scenarios_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/service"
)

// Every command of docs/http.md is run with curl, unchanged but for the port, and gives the
// answer of the page.
func TestHTTPPage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: no curl here, the commands of docs/http.md are not run: ", err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "")
	env.Publish(events.KindTurn, "s1", workertest.CallsTurn(1, "read_file:/repo/retry.go"))
	env.Publish(events.KindTurn, "s1", workertest.CallsTurn(2, "read_file:/repo/retry.go"))
	env.AwaitDecided()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	e := env.StartEdge(r.Worker, func(c *agents.Config) { c.SigningKey = key })
	e.WriteTokens(workertest.TokenLine("0123456789abcdef", "default agent"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```\n```json\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != strings.Count(string(page), "```sh") || len(blocks) < 6 {
		t.Fatalf("%d commands of %d have an answer", len(blocks), strings.Count(string(page), "```sh"))
	}
	for _, b := range blocks {
		command := strings.ReplaceAll(string(b[1]), "127.0.0.1:8223", m.Addr())
		command = strings.ReplaceAll(command, "127.0.0.1:8224", e.Listener.Addr())
		out, err := exec.CommandContext(t.Context(), "sh", "-ec", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		wantLike(t, command, jsonValues(t, b[2]), jsonValues(t, out))
	}
	for _, route := range service.Operations() {
		short := strings.Replace(route.Path, "/v1/sessions/{tenant}/{session}/", "…/", 1) // in the table of agents
		if !strings.Contains(string(page), "| `"+route.Method+" "+route.Path+"` |") && !strings.Contains(string(page), "| `"+route.Method+" "+short+"` |") {
			t.Errorf("docs/http.md does not have %s %s", route.Method, route.Path)
		}
	}
}

// jsonValues reads a sequence of JSON values.
func jsonValues(t *testing.T, data []byte) (out []any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(data)))
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		out = append(out, v)
	}
	return out
}

// wantLike compares what is in want with its counterpart in got, which may have more
// fields.
func wantLike(t *testing.T, at string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for key, value := range want {
			wantLike(t, at+"."+key, value, g[key])
		}
	case []any:
		g, _ := got.([]any)
		if len(g) != len(want) {
			t.Errorf("%s: got %v", at, got)
			return
		}
		for i, value := range want {
			wantLike(t, fmt.Sprint(at, i), value, g[i])
		}
	default:
		if want != got {
			t.Errorf("%s: got %v, want %v", at, got, want)
		}
	}
}

// The two turns of testdata/compacted_page.jsonl have the answer of session.compacted in
// docs/format/wire.md, but for the hash of the config.
func TestCompactedPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "format", "wire.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## session.compacted\n")
	block := regexp.MustCompile("(?s)```\n(.*?)```").FindStringSubmatch(section)
	turns, err := os.ReadFile(filepath.Join("testdata", "compacted_page.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, policy.Default())
	stop := env.Run("a", observe.Listener{})
	for turn := range bytes.Lines(turns) {
		env.Publish(events.KindTurn, "w1", turn)
	}
	env.AwaitDecided()
	stop()
	var got []any
	for subject, payloads := range env.Stored() {
		if at, err := events.ParseOutcome(subject); err == nil && at.Kind == events.KindCompacted {
			got = append(got, jsonValues(t, []byte(strings.Join(payloads, "\n")))...)
		}
	}
	want := jsonValues(t, []byte(strings.NewReplacer("{…}", "{}", ",…", "", "\n  …", `"…",`).Replace(block[1])))
	if len(got) != 1 || len(want) != 1 {
		t.Fatalf("%d answers of %d: %v", len(got), len(want), got)
	}
	shown, stored := want[0].(map[string]any), got[0].(map[string]any)
	delete(shown, "config")
	messages, all := shown["messages"].([]any), stored["messages"].([]any)
	for i, m := range messages {
		if m == "…" { // the middle is cut
			stored["messages"] = append(append(all[:i:i], m), all[len(all)-(len(messages)-i-1):]...)
		}
	}
	wantLike(t, "compacted", shown, stored)
}
