// Package insight shows people what is in a session's window, and what a compaction changed.
//
//	rows := insight.Changes(before, after, edits, count)
//	x := insight.NewXray(rate)
//	x.Add(message, place)
//
// # Guarantees
//
//   - Every message before and after a compaction is in one row.
//   - The kinds of an x-ray add up to the input that it is given.
//
// # Concurrency
//
// Values are for one goroutine.
//
// # On failure
//
// A message that its dialect cannot read is shown as it came.
package insight
