package realsessions

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir is the directory of transcripts. A relative path is relative to the test's package.
func Dir(t testing.TB) string {
	t.Helper()
	return first(t, "COMPACTD_SESSIONS")
}

// More is the directory of transcripts in the formats of programs.
func More(t testing.TB) string {
	t.Helper()
	return first(t, "COMPACTD_MORE_SESSIONS")
}

func first(t testing.TB, name string) string {
	t.Helper()
	list := filepath.SplitList(os.Getenv(name))
	if len(list) == 0 {
		t.Skipf("SKIPPED: no real sessions: set %s to a directory of transcripts", name)
	}
	if _, err := os.Stat(list[0]); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return list[0]
}
