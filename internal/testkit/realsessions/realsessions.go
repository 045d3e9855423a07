// Package realsessions finds the transcripts of real agents, which are not part of the repository.
//
//	sessions, err := transcripttest.Read(realsessions.Dir(t))
//
// # Guarantees
//
// The directory is the first that COMPACTD_SESSIONS lists; there is no default. Tests of the
// dialects read those of COMPACTD_MORE_SESSIONS too, of any format that worker replay reads.
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
	list := filepath.SplitList(os.Getenv("COMPACTD_SESSIONS"))
	if len(list) == 0 {
		t.Skip("SKIPPED: no real sessions: set COMPACTD_SESSIONS to a directory of transcripts")
	}
	dir := list[0]
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("COMPACTD_SESSIONS: %v", err)
	}
	return dir
}
