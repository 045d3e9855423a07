// Package redecide decides recorded events again and compares: it shows that outcomes follow
// from the log.
//
//	found, err := redecide.Replay(ctx, nc, redecide.Span{Tenant: "acme"})
//	ok := err == nil && found.Equal()
//
// [Replay] compares byte for byte, each event under the config recorded for it. [Recordings]
// returns sessions with their events, to compare policies. A [Span] selects sessions and a range of events.
//
// # Guarantees
//
// The package only reads, and may run beside workers. It does not read commits after the call.
//
// # Concurrency
//
// Calls are independent. Each needs memory for the ledgers of one partition and of those split off from it, and
// 64 MiB for texts.
//
// # On failure
//
// A difference is a result, not an error. Errors come from reading the streams. Sessions that
// cannot be decided again are counted, but not compared.
package redecide
