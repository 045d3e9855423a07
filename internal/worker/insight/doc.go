// Package insight describes the content of a session's window, and the changes of a compaction.
//
//	rows := insight.Changes(before, after, edits, count)
//	xr := insight.NewXray(rate)
//	xr.Add(message, place)
//
// # Guarantees
//
//   - Every message before and after a compaction is in one row.
//   - The kinds of an x-ray sum up to the given input.
//
// # Concurrency
//
// One goroutine may use a value at a time.
//
// # On failure
//
// A message that its dialect cannot read is shown raw.
package insight
