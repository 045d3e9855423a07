// Package diff shows message by message what a compaction changed.
//
//	c := diff.Change{Title: "chat-42 at turn 17", Before: before, After: after, Count: count}
//	err := c.Write(os.Stdout)
//
// Messages that a compaction leaves as they are, and those of which it replaces only the
// text of a tool result, are found again by their bytes or the ids of their calls. A
// message that is not found is gone: into the summary or the marker in its place.
//
// # Guarantees
//
//   - Every message of Before is in the table, or in the count of a row that stands for
//     several, and so is every one of After.
//   - A long history is reported in at most some thirty rows.
//
// # Concurrency
//
// A change is not modified; it may be written by several goroutines.
//
// # On failure
//
// Only the writer can fail.
package diff
