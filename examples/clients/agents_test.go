package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/examples/agenttest"
	"compactd/internal/testkit/edge"
)

var need = flag.String("need", "", "what has to run, with commas: the agents go, python, typescript, and the Python package with httpx")

// agents say how each is made to run: a command, or what this machine lacks.
var agents = map[string]func(t *testing.T) (command []string, lacks string){
	"go":         goAgent,
	"python":     pythonAgent,
	"typescript": typescriptAgent,
}

// Every agent publishes 24 turns, takes the outcomes, requests what it missed, and holds
// a history that is valid and shorter than what it published.
func TestAgents(t *testing.T) {
	t.Parallel()
	for name := range strings.SplitSeq(*need, ",") {
		if name != "" && name != "httpx" && agents[name] == nil {
			t.Errorf("-need %s: there is no such agent", name)
		}
	}
	url := agenttest.Compactd(t)
	for name, prepare := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, lacks := prepare(t)
			switch {
			case lacks == "":
				check(t, run(t, command, "NATS_URL="+url))
			case needed(name):
				t.Fatal(lacks)
			default:
				fmt.Printf("\n** THE %s AGENT WAS NOT RUN: %s\n\n", strings.ToUpper(name), lacks)
				t.Skip("SKIPPED: " + lacks)
			}
		})
	}
}

// An agent whose message ids are copied on their way ends with an error at the first
// turn that was not stored; it does not go on without it.
func TestCopiedIDs(t *testing.T) {
	t.Parallel()
	url := agenttest.Compactd(t)
	nc, err := nats.Connect(url)
	must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(t, err)
	edge := edge.Edge{Steal: func(id string) error {
		_, err := js.Publish(t.Context(), "session.turn.evil.x", []byte(`{"messages":[]}`), jetstream.WithMsgID(id))
		return err
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() { _ = edge.Serve(l, strings.TrimPrefix(url, "nats://")) }() // until l is closed
	for name, prepare := range agents {
		t.Run(name, func(t *testing.T) {
			command, lacks := prepare(t)
			if lacks != "" {
				t.Skip("SKIPPED: " + lacks) // TestAgents fails where it has to run
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "NATS_URL=nats://"+l.Addr().String())
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "another client has used the id") {
				t.Errorf("it ended with %v:\n%s", err, out)
			}
		})
	}
}

// check holds the line that an agent prints to what happened.
func check(t *testing.T, printed string) {
	t.Helper()
	var line struct {
		Turns, Generation, Messages int
		Stored, Resyncs             *int // one of them
		Valid                       bool `json:"history_valid"`
	}
	if err := json.Unmarshal([]byte(printed), &line); err != nil {
		t.Fatalf("it printed %q: %v", printed, err)
	}
	fmt.Printf("%s: %s", t.Name(), printed)
	if line.Turns != 24 || line.Generation < 1 || line.Messages >= 48 || !line.Valid {
		t.Error("want 24 turns, a compaction, and a valid history of fewer messages than 48")
	}
	switch {
	case line.Resyncs != nil && *line.Resyncs < 1:
		t.Error("it missed no outcome")
	case line.Resyncs == nil && (line.Stored == nil || *line.Stored < line.Generation):
		t.Error("OUTCOMES holds an older history than was published")
	}
}

// runTime bounds a command: some compile a package and run all its tests.
const runTime = 10 * time.Minute

// run returns what a command prints, with what it complains of when it fails.
func run(t *testing.T, command []string, environ ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environ...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, complaints.String())
	}
	return string(out)
}

func goAgent(t *testing.T) ([]string, string) {
	path := filepath.Join(t.TempDir(), "agent")
	run(t, []string{"go", "build", "-buildvcs=false", "-o", path, "./go"})
	return []string{path}, ""
}

func pythonAgent(t *testing.T) ([]string, string) {
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import nats").Run(); err != nil {
		return nil, "it needs python3 and nats-py: pip install nats-py"
	}
	return []string{"python3", "-B", "../python/demo.py"}, ""
}

// typescriptAgent compiles it in a directory of its own.
func typescriptAgent(t *testing.T) ([]string, string) {
	version, err := exec.CommandContext(t.Context(), "node", "-p", "process.versions.node.split('.')[0]").Output()
	if major, _ := strconv.Atoi(strings.TrimSpace(string(version))); err != nil || major < 18 {
		return nil, "it needs node 18 or newer, and npm"
	}
	dir := t.TempDir()
	for _, name := range []string{"agent.ts", "demo.ts", "package.json", "package-lock.json", "tsconfig.json"} {
		text, err := os.ReadFile(filepath.Join("../typescript", name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	installed, err := filepath.Abs("../typescript/node_modules")
	must(t, err)
	if _, err := os.Stat(filepath.Join(installed, "typescript")); err == nil {
		must(t, os.Symlink(installed, filepath.Join(dir, "node_modules")))
	} else if exec.CommandContext(t.Context(), "npm", "ci", "--offline", "--prefix", dir).Run() != nil {
		return nil, "its packages are not installed: npm ci --prefix examples/typescript"
	}
	run(t, []string{"node", filepath.Join(dir, "node_modules/typescript/bin/tsc"), "-p", dir})
	return []string{"node", filepath.Join(dir, "dist/demo.js")}, ""
}

// An agent that docs/clients.md calls 70 lines has no more of them, blank ones and comments
// aside, nor are they wider than a page.
func TestLength(t *testing.T) {
	for _, path := range []string{"../typescript/agent.ts", "../python/agent.py"} {
		text, err := os.ReadFile(path)
		must(t, err)
		code := 0
		for line := range strings.Lines(string(text)) {
			if len(line) > 111 {
				t.Errorf("%s: too wide: %s", path, line)
			}
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, `"""`) {
				code++
			}
		}
		if code < 30 || code > 70 {
			t.Errorf("%s has %d lines of code", path, code)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
