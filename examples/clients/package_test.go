package clients

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"compactd/examples/agenttest"
	"compactd/internal/events"
)

// The package for JavaScript passes its own tests, and the exchanges of clients/conformance. Its
// tarball works in an empty project, with the lines of its README.
func TestPackage(t *testing.T) {
	t.Parallel()
	lacksPackage(t)
	must(t, buildPackage())
	const dir = packageDir
	fmt.Printf("%s: %s\n", t.Name(), summaryOf(run(t, []string{"npm", "test", "--prefix", dir})))

	project := t.TempDir()
	run(t, []string{"npm", "pack", dir, "--pack-destination", project})
	tarballs, err := filepath.Glob(filepath.Join(project, "*.tgz"))
	must(t, err)
	run(t, append([]string{"npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", project}, tarballs...))
	sdk, err := filepath.Abs(filepath.Join(dir, "node_modules/openai"))
	must(t, err)
	must(t, os.Symlink(sdk, filepath.Join(project, "node_modules/openai")))
	agent, err := os.ReadFile(filepath.Join(dir, "test/three.mjs"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(project, "agent.mjs"), agent, 0o600))

	tokens := filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(tokens, fmt.Appendf(nil, "%x default agent\n", sha256.Sum256([]byte("a-token"))), 0o600))
	_, at := agenttest.WithEdge(t, tokens)
	p := &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4"}
	server := httptest.NewServer(p)
	defer server.Close()
	printed := run(t, []string{"node", filepath.Join(project, "agent.mjs")}, "WORKER=http://"+at, "TOKEN=a-token",
		"OPENAI_BASE_URL="+server.URL+"/v1", "OPENAI_API_KEY=none", "MODEL=gpt-4")
	r := p.Result()
	if strings.TrimSpace(printed) != "60" || r.Calls-r.TooLong != 20 || len(r.Refused) > r.TooLong {
		t.Errorf("it printed %s; %d calls, refused: %v", printed, r.Calls, r.Refused)
	}
}

// summaryOf returns the numbers that node --test prints at its end.
func summaryOf(printed string) string {
	var numbers []string
	for line := range strings.Lines(printed) {
		if n, found := strings.CutPrefix(line, "# "); found && (strings.HasPrefix(n, "pass") || strings.HasPrefix(n, "fail") || strings.HasPrefix(n, "skipped")) {
			numbers = append(numbers, strings.TrimSpace(n))
		}
	}
	return strings.Join(numbers, ", ")
}

const packageDir = "../../clients/typescript"

// buildPackage compiles the package, once for all tests: later builds find nothing to do.
var buildPackage = sync.OnceValue(func() error {
	out, err := exec.CommandContext(context.Background(), "npm", "run", "build", "--prefix", packageDir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
})

// lacksPackage skips the test where the package cannot be built.
func lacksPackage(t *testing.T) {
	t.Helper()
	lacksNode(t)
	if _, err := os.Stat("../../clients/typescript/node_modules/openai"); err == nil && exec.CommandContext(t.Context(), "npm", "--version").Run() == nil {
		return
	}
	const lacks = "its packages are not installed: npm ci --prefix clients/typescript"
	if needed("typescript") {
		t.Fatal(lacks)
	}
	fmt.Printf("\n** THE PACKAGE FOR JAVASCRIPT WAS NOT TESTED: %s\n\n", lacks)
	t.Skip("SKIPPED: " + lacks)
}
