package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The publisher connects to NATS only: the
// SDKs of model providers, the token tables and the state are the worker's.
func TestLinksNoProvider(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := string(out)
	if !strings.Contains(deps, "github.com/nats-io/nats.go\n") {
		t.Fatalf("not a list of packages: %.200s", deps)
	}
	for _, pkg := range []string{
		"github.com/openai/openai-go", "github.com/anthropics/anthropic-sdk-go", "google.golang.org/genai",
		"github.com/aws/", "cloud.google.com/", "google.golang.org/grpc",
		"compactd/internal/summarize", "github.com/tiktoken-go/tokenizer", "github.com/zricethezav/gitleaks",
		"go.etcd.io/bbolt", "github.com/nats-io/nats-server",
	} {
		if strings.Contains(deps, pkg) {
			t.Errorf("publisher links %s", pkg)
		}
	}
}
