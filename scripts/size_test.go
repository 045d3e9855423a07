// Package scripts tests the scripts of this directory.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file is counted by its path, and the work tree and its commit have the same table.
func TestSize(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"cmd/a/main.go", "cmd/a/main_test.go", "client/testdata/a.go", "internal/bench/b.go", "internal/testkit/ports/ports.go",
		"internal/broker/clustertest/node.go", "tools/b/b.go", "tools/b/b_test.go", "docs/a.md", "README.md", "THIRD_PARTY_NOTICES.md", "Makefile",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("a\n\nb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs("size")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed, nothing is counted: ", err)
	}
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		return string(out)
	}
	for _, args := range []string{"init -q", "add .", "-c user.name=a -c user.email=a@example.com commit -qm first"} {
		run("git", strings.Fields(args)...)
	}
	want := `product  tools   tests   docs  directory
                            3  .
      3              3         cmd/a
                            3  docs
             3                 internal/bench
                     3         internal/broker/clustertest
                     3         internal/testkit/ports
             3       3         tools/b
size product=3 tools=6 tests=12 docs=6
`
	for _, got := range []string{run(script), run(script, "HEAD")} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
