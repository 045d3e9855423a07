// Package realsessions finds the transcripts of real agents, which are not part of the repository.
//
//	sessions, err := transcripttest.Read(realsessions.Dir(t))
//
// # Guarantees
//
// Each directory is the first that its variable lists; there is no default: COMPACTD_SESSIONS
// has our own format, COMPACTD_MORE_SESSIONS any that worker replay reads, for tests of the
// readers and of the dialects.
//
// # Concurrency
//
// Any number of tests may use it.
//
// # On failure
//
// Without the variable the test is skipped, with a text that names the variable. A
// directory that does not exist fails the test.
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
