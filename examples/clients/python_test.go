package clients

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// python is an interpreter that can import some modules: that of the path, or the system's. Where
// there is none, the test is skipped, or fails where -need names the need.
func python(t *testing.T, need string, modules ...string) string {
	t.Helper()
	script := "import sys, " + strings.Join(append(modules, "json"), ", ") + "; sys.exit(sys.version_info < (3, 10))"
	for _, path := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), path, "-c", script).Run() == nil {
			return path
		}
	}
	lacks := "it needs python3, 3.10 or newer, with " + strings.Join(modules, " and ")
	if needed(need) {
		t.Fatal(lacks)
	}
	fmt.Printf("\n** %s WAS NOT RUN: %s\n\n", t.Name(), lacks)
	t.Skip("SKIPPED: " + lacks)
	return ""
}

// The Python package passes its own tests: the exchanges of clients/conformance through each of its
// transports, none left out.
func TestPythonPackage(t *testing.T) {
	path := python(t, "httpx", "httpx")
	cmd := exec.CommandContext(t.Context(), path, "-B", "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", "../../clients/python/tests")
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../clients/python/src")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "skipped") {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if _, rest, ok := strings.Cut(line, "exchanges "); ok {
			fmt.Printf("%s: exchanges %s", t.Name(), rest)
		}
	}
}

// needed reports whether -need names an agent, or httpx.
func needed(name string) bool { return slices.Contains(strings.Split(*need, ","), name) }
