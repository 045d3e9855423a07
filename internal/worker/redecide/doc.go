// Package redecide decides recorded events again and compares: it shows that outcomes follow
// from the log.
//
//	found, err := redecide.Replay(ctx, nc, redecide.Span{Tenant: "acme"})
//	ok := err == nil && found.Equal()
//
// [Replay] compares byte for byte, each event under the config recorded for it. [Recordings]
// passes on sessions with their events, for comparing policies. A [Span] selects sessions and a range of events.
//
// # Guarantees
//
// It reads only, and may run beside workers. Commits after the call are not read.
//
// # Concurrency
//
// Each call is on its own. It needs memory for the ledgers of one partition and of those that it was split
// into, and 64 MiB for texts.
//
// # On failure
//
// A difference is a result, no error. Errors are those of reading the streams. Sessions that
// cannot be decided again are counted, and not compared.
package redecide
