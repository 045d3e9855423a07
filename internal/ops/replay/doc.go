// Package replay publishes recorded sessions as their agents would have, and
// reports what the workers made of them.
//
//	report, err := replay.Run(ctx, replay.Config{Conn: nc}, slices.Values(sessions))
//	report.WriteTable(os.Stdout, false)
//
// # Guarantees
//
//   - A session's turns go out one after the other, each after the answer to the
//     one before; sessions go out side by side.
//   - The report counts what is stored in OUTCOMES. What an agent with a plain
//     subscription heard is compared with it.
//   - Where a history would have overflowed without compactd is an estimate: what
//     was saved is added to what the workers told of, turn by turn.
//   - Every compacted history is checked by [events.Validate].
//
// # Concurrency
//
// Run starts its goroutines and returns when they have ended.
//
// # On failure
//
// Run ends at the first turn that cannot be published, or when ctx ends.
package replay
