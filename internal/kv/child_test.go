package kv

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childEnv names the part that this process plays for a test in another one.
const childEnv = "KV_TEST_CHILD"

var children = map[string]func(args []string) error{
	"mutate": mutateChild,
	"write":  writeChild,
	"full":   fullChild,
}

func TestMain(m *testing.M) {
	if part := strings.Fields(os.Getenv(childEnv)); len(part) > 0 {
		if err := children[part[0]](part[1:]); err != nil {
			fmt.Println("error", err)
			os.Exit(3)
		}
		return
	}
	// Each run of the model test is a file with some 30 steps.
	if err := flag.Set("rapid.checks", "50"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// startChild runs this binary again. lines gives what it prints, until it ends.
func startChild(t *testing.T, part ...any) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.TrimSpace(fmt.Sprintln(part...)))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &tail{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines = bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return cmd, lines
}

// tail keeps the beginning of what a child prints when it crashes.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[:min(len(p), 2000-min(len(t.b), 2000))]...)
	return len(p), nil
}
