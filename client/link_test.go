package client

import (
	"os/exec"
	"strings"
	"testing"

	"compactd/internal/events"
)

// The code that agents link connects to NATS only: no server, no state, no SDK of
// a provider.
func TestLinksLittle(t *testing.T) {
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
		"compactd/internal/summarize", "compactd/internal/compaction", "compactd/internal/worker", "compactd/internal/kv",
		"github.com/tiktoken-go/tokenizer", "github.com/zricethezav/gitleaks",
		"go.etcd.io/bbolt", "github.com/nats-io/nats-server", "github.com/rs/zerolog", "github.com/prometheus",
	} {
		if strings.Contains(deps, pkg) {
			t.Errorf("client links %s", pkg)
		}
	}
}

// The codes of the client are those of the wire contract.
func TestCodesAreOfTheContract(t *testing.T) {
	for _, c := range []Code{
		CodeTurnConflict, CodeTurnGap, CodeSessionReset, CodeBadMessage, CodeBadPolicy, CodeTooLarge, CodeFormatChanged, CodeOutOfRange,
		CodeNotOverflow, CodeBudgetExceeded, CodeNotEnoughMessages, CodeNothingToDo, CodeNewerGeneration, CodeAborted, CodeIncompleteResponse,
		CodeUnknownSession, CodeUnknownTurn, CodeUnknownGeneration,
	} {
		if _, ok := events.Codes[events.Code(c)]; !ok {
			t.Errorf("%s is none of the contract", c)
		}
	}
	if string(CodeUnavailable) != string(events.CodeUnavailable) || string(CodeGone) != string(events.CodeGone) {
		t.Errorf("%s and %s are none of the contract", CodeUnavailable, CodeGone)
	}
}
