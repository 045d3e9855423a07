package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"compactd/examples/agenttest"
)

// installed is where npm has the agents.
const installed = "../../clients/agents/node_modules"

// wholeAgent is an agent that people use, as it comes from npm.
type wholeAgent struct {
	name, pkg    string
	wire, model  string
	tool         string // that runs a command
	argument     string // of the tool, which has the command
	command      []string
	file, config string // in its home; URL is the base URL without a version
}

const prompt = "Find out why the tests fail."

// Each command has URL for the base URL without a version.
var wholeAgents = []wholeAgent{
	{
		name: "claude-code", pkg: "@anthropic-ai/claude-code", wire: "messages", model: "claude-opus-4-8", tool: "Bash", argument: "command",
		command: []string{"claude", "-p", prompt, "--model", "claude-opus-4-8", "--tools", "Bash", "--dangerously-skip-permissions"},
	},
	{
		name: "codex", pkg: "@openai/codex", wire: "responses", model: "gpt-5", tool: "exec_command", argument: "cmd",
		command: []string{"codex", "exec", "-m", "gpt-5", "-c", `openai_base_url="URL/v1"`, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt},
	},
	{
		name: "opencode", pkg: "opencode-ai", wire: "messages", model: "claude-haiku-4-5", tool: "bash", argument: "command",
		command: []string{"opencode", "run", "-m", "anthropic/claude-haiku-4-5", prompt},
	},
	{
		name: "pi-coding-agent", pkg: "@earendil-works/pi-coding-agent", wire: "messages", model: "claude-haiku-4-5", tool: "bash", argument: "command",
		command: []string{"pi", "-p", "--provider", "anthropic", "--model", "claude-haiku-4-5", "--offline", "--no-session", prompt},
		file:    ".pi/agent/models.json", config: `{"providers":{"anthropic":{"baseUrl":"URL"}}}`,
	},
}

// Whole agents make 60 steps behind a gateway, in a window of 16,384 tokens, and go on when gateway and
// worker are killed. No refusal reaches them.
func TestGatewayAgents(t *testing.T) {
	for _, a := range wholeAgents {
		version, err := a.version()
		if err != nil {
			fmt.Printf("gateway %s was not run: %v\n", a.name, err)
			continue
		}
		for _, kind := range []string{"whole", "killed"} {
			t.Run(a.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				worker, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
				p := &tapped{Strict: &agenttest.Strict{Format: wires[a.wire].format, Model: a.model, Steps: steps, Use: a.use}}
				provider := httptest.NewServer(p)
				defer provider.Close()
				gateway, to := newGateway(t, "http://"+at, provider.URL, agenttest.StrictWindow)
				if kind == "killed" {
					p.Steps += 2 // answers that do not arrive
					p.At = killing(gateway, worker)
				}
				front := newFront(t, to)
				got := behind{Version: version, Error: a.run(t, front.at)}
				got.Generations = front.generations()
				p.check(t, got, kind)
			})
		}
	}
}

// version starts the agent for its version.
func (a *wholeAgent) version() (string, error) {
	text, err := os.ReadFile(filepath.Join(installed, a.pkg, "package.json"))
	if err != nil {
		return "", fmt.Errorf("npm ci --prefix clients/agents has not installed %s", a.pkg)
	}
	var of struct{ Version string }
	if err := json.Unmarshal(text, &of); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, filepath.Join(installed, ".bin", a.command[0]), "--version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s --version: %w: %s", a.command[0], err, bytes.ReplaceAll(out, []byte("\n"), []byte(" ")))
	}
	return of.Version, nil
}

// use is a command with some 3 KB of output.
func (a *wholeAgent) use(call int) (tool, arguments string) {
	command := fmt.Sprintf("seq %d %d | sed 's/$/: a line that a test has printed, with what it found/'", call*100, call*100+50)
	text, err := json.Marshal(map[string]string{a.argument: command, "description": "Run a test"})
	if err != nil {
		panic(err) // of strings
	}
	return a.tool, string(text)
}

// run runs the agent in a directory of its own, and returns why it failed, "" where it did not.
func (a *wholeAgent) run(t *testing.T, base string) string {
	t.Helper()
	home, err := os.MkdirTemp(programs, "home-") //nolint:usetesting // a process of the agent may outlive the test
	must(t, err)
	dir := filepath.Join(home, "project")
	must(t, os.Mkdir(dir, 0o700))
	if a.file != "" {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(home, a.file)), 0o700))
		must(t, os.WriteFile(filepath.Join(home, a.file), []byte(strings.ReplaceAll(a.config, "URL", base)), 0o600))
	}
	bin, err := filepath.Abs(filepath.Join(installed, ".bin"))
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	args := strings.Split(strings.ReplaceAll(strings.Join(a.command, "\x00"), "URL", base), "\x00")
	cmd := exec.CommandContext(ctx, filepath.Join(bin, args[0]), args[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, time.Minute
	cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=",
		"ANTHROPIC_BASE_URL="+base, "ANTHROPIC_API_KEY=sk-ant-none", "OPENAI_API_KEY=sk-none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1")
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		return fmt.Sprintf("%v: %s", err, out[max(0, len(out)-2000):])
	case !bytes.Contains(out, []byte("Done.")):
		return fmt.Sprintf("it ended without the last answer: %s", out[max(0, len(out)-2000):])
	}
	return ""
}

// front is between an agent and a gateway: it has when calls came, and the generations of answers.
type front struct {
	at string

	mu sync.Mutex // guards of
	of map[int]int
}

func newFront(t *testing.T, gateway string) *front {
	t.Helper()
	to, err := url.Parse(gateway)
	must(t, err)
	f := &front{of: map[int]int{}}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Set("X-Began", strconv.FormatFloat(float64(time.Now().UnixMicro())/1000, 'f', 3, 64))
		},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			call, err := strconv.Atoi(r.Header.Get("X-Call"))
			generation, unrecorded := strconv.Atoi(r.Header.Get("X-Compactd-Generation"))
			if err == nil && unrecorded == nil && r.StatusCode == http.StatusOK {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.of[call] = generation
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as a gateway that was killed
	})
	t.Cleanup(server.Close)
	f.at = server.URL
	return f
}

func (f *front) generations() map[int]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of
}
