package claim_test

import (
	"os"
	"strings"
	"testing"

	"compactd/internal/summarize/claim"
)

func lines(t testing.TB, file string) (out []string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(raw)) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

func TestClaims(t *testing.T) {
	for _, l := range lines(t, "testdata/claims.txt") {
		if k, _ := claim.Of(l); k <= claim.Denial {
			t.Errorf("no claim: %s", l)
		}
	}
	for _, l := range lines(t, "testdata/plain.txt") {
		if k, rest := claim.Of(l); k > claim.Denial {
			t.Errorf("a claim: %s (%d, %q)", l, k, rest)
		}
	}
}
