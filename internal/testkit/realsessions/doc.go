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
