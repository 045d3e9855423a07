package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The worker links no SDK of a provider and nothing of what they brought along: they
// were half of a cold build. make build-cost measures the rest.
func TestLinksNoSDK(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := string(out)
	if !strings.Contains(deps, "compactd/internal/summarize/provider\n") {
		t.Fatalf("not a list of packages: %.200s", deps)
	}
	for _, pkg := range []string{
		"github.com/openai/openai-go", "github.com/anthropics/anthropic-sdk-go", "google.golang.org/genai",
		"google.golang.org/grpc", "google.golang.org/api",
		"testing\n", "github.com/google/go-cmp", "pgregory.net/rapid",
	} {
		if strings.Contains(deps, pkg) {
			t.Errorf("worker links %s", strings.TrimSpace(pkg))
		}
	}
}
