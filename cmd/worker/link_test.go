package main

import (
	"errors"
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

// A flag on the command line beats the environment, in both directions; two flags that
// exclude each other are refused.
func TestChooseServer(t *testing.T) {
	const url, listen = "nats://broker:4222", "127.0.0.1:-1"
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want string // f.NATS; "" embeds a server
		err  error
	}{
		{name: "neither"},
		{name: "environment", env: map[string]string{"NATS_URL": url}, want: url},
		{name: "both in the environment", env: map[string]string{"NATS_URL": url, "COMPACTD_LISTEN": listen}, want: url},
		{name: "listen beats the environment", env: map[string]string{"NATS_URL": url}, args: []string{"--listen", listen}},
		{name: "listen after the command", env: map[string]string{"NATS_URL": url}, args: []string{"serve", "--listen=" + listen}},
		{name: "nats beats the environment", env: map[string]string{"NATS_URL": "nats://other:4222", "COMPACTD_LISTEN": listen}, args: []string{"--nats", url}, want: url},
		{name: "both flags", args: []string{"--nats", url, "--listen", listen}, err: errTwoServers},
		{name: "both flags of a command", args: []string{"doctor", "--nats", url, "--listen", listen}, err: errTwoServers},
		{name: "no nats", env: map[string]string{"NATS_URL": url}, args: []string{"--nats=", "--listen", listen}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"NATS_URL", "COMPACTD_LISTEN"} {
				t.Setenv(name, c.env[name])
			}
			var f flags
			if _, err := parser(&f, "json").Parse(c.args); !errors.Is(err, c.err) {
				t.Fatalf("got error %v, want %v", err, c.err)
			}
			if c.err == nil && f.NATS != c.want {
				t.Errorf("--nats is %q, want %q", f.NATS, c.want)
			}
		})
	}
}
