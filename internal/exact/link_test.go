package exact_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A7: the token tables are in the worker, and in no program that an agent's
// machine runs.
func TestLinkedByWorkerOnly(t *testing.T) {
	for pkg, want := range map[string]bool{"compactd/cmd/worker": true, "compactd/cmd/publisher": false} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Fatalf("list what %s links: %v", pkg, err)
		}
		for _, dep := range []string{"compactd/internal/exact", "github.com/tiktoken-go/tokenizer/codec"} {
			if got := slices.Contains(strings.Fields(string(out)), dep); got != want {
				t.Errorf("%s links %s: %v, want %v", pkg, dep, got, want)
			}
		}
	}
}
