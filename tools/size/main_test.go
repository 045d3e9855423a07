package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A file is counted where its path puts it.
func TestKindOf(t *testing.T) {
	for file, want := range map[string]kind{
		"cmd/worker/main.go":                  product,
		"client/session.go":                   product,
		"internal/worker/worker.go":           product,
		"internal/worker/worker_test.go":      test,
		"internal/testkit/ports/ports.go":     test,
		"internal/broker/clustertest/node.go": test,
		"internal/a/testdata/a.go":            nothing,
		"internal/bench/main.go":              tool,
		"tools/bench/main.go":                 tool,
		"tools/bench/main_test.go":            test,
		"examples/agents/openai/main.go":      tool,
		"README.md":                           page,
		"docs/adr/README.md":                  page,
		"THIRD_PARTY_NOTICES.md":              nothing,
		"Makefile":                            nothing,
	} {
		if got := kindOf(file); got != want {
			t.Errorf("%s is counted as %d, want %d", file, got, want)
		}
	}
}

// The work tree and its commit have the same table.
func TestRun(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"cmd/a/main.go": "package main\n\n// A comment.\n", "cmd/a/main_test.go": "package main\n",
		"tools/b/b.go": "package main\n\n", "docs/a.md": "# A\n\nb\n\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed, no commit is counted: ", err)
	}
	for _, args := range []string{"init -q", "add .", "-c user.name=a -c user.email=a@example.com commit -qm first"} {
		if out, err := exec.Command("git", append([]string{"-C", root}, strings.Fields(args)...)...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v: %s", err, out)
		}
	}
	want := "" +
		"  product  tools  tests  docs directory\n" +
		"        3             1       cmd/a\n" +
		"                            4 docs\n" +
		"               2              tools/b\n" +
		"size product=3 tools=2 tests=1 docs=4\n"
	for _, at := range []string{"", "HEAD"} {
		var out bytes.Buffer
		if err := run(&out, root, at); err != nil || out.String() != want {
			t.Errorf("%q: %v, got\n%swant\n%s", at, err, &out, want)
		}
	}
}
