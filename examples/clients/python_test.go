package clients

import (
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"compactd/examples/agenttest"
	"compactd/internal/events"
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
	t.Parallel()
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

// needed reports whether -need names an agent, httpx, or what is measured on a quiet machine alone.
func needed(name string) bool { return slices.Contains(strings.Split(*need, ","), name) }

// build builds the package twice, the second time from its source distribution.
const build = `
import glob, os, tarfile, zipfile
from setuptools import build_meta
build_meta.build_wheel("..")
sdist = build_meta.build_sdist("..")
os.chdir("..")
tarfile.open(sdist).extractall()
wheel, = glob.glob("*.whl")
os.chdir(sdist.removesuffix(".tar.gz"))
build_meta.build_wheel("again")
names = lambda path: sorted((i.filename, i.CRC) for i in zipfile.ZipFile(path).infolist())
assert names(f"../{wheel}") == names(f"again/{wheel}")
assert any(name.endswith("py.typed") for name, _ in names(f"again/{wheel}"))
`

// The package is built without a network, and installed into an environment without any other. An
// agent on the lines of its README makes twenty calls there; its SDK needs httpx of the system.
func TestPythonWheel(t *testing.T) {
	t.Parallel()
	path := python(t, "httpx", "httpx", "setuptools", "wheel", "pip")
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "source"), os.DirFS("../../clients/python")))
	cmd := exec.CommandContext(t.Context(), path, "-c", build)
	cmd.Dir = filepath.Join(dir, "source")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	env := filepath.Join(dir, "env")
	run(t, []string{path, "-m", "venv", "--without-pip", env})
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	must(t, err)
	own := filepath.Join(env, "bin/python")
	run(t, append([]string{path, "-m", "pip", "--python", own, "install", "--quiet", "--no-index", "--no-compile"}, wheels...))
	installed := strings.TrimSpace(run(t, []string{own, "-I", "-c", "import compactd.urllib; print(compactd.urllib.__file__.rpartition('/compactd/')[0])"}))
	if !strings.HasPrefix(installed, env) {
		t.Errorf("the package is in %s", installed)
	}

	tokens := filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(tokens, fmt.Appendf(nil, "%x default agent\n", sha256.Sum256([]byte("a-token"))), 0o600))
	_, at := agenttest.WithEdge(t, tokens)
	p := &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4"}
	server := httptest.NewServer(p)
	defer server.Close()
	printed := run(t, []string{path, "-B", "../../clients/python/tests/three.py"}, "PYTHONPATH="+installed,
		"WORKER=http://"+at, "TOKEN=a-token", "PROVIDER="+server.URL, "MODEL=gpt-4")
	r := p.Result()
	fmt.Printf("%s: %d calls, %d of them refused and sent again\n", t.Name(), r.Calls, r.TooLong)
	if n, _ := strconv.Atoi(strings.TrimSpace(printed)); n < 60 || r.Calls-r.TooLong != 20 || len(r.Refused) > r.TooLong {
		t.Errorf("it printed %s; %d calls, refused: %v", printed, r.Calls, r.Refused)
	}
}
