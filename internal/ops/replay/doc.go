// Package replay publishes sessions as their agents would, and reports what the workers
// made of them: recorded sessions ([Run]), or those of a synthetic fleet ([Load]).
//
//	report, err := replay.Run(ctx, replay.Config{Conn: nc}, slices.Values(sessions))
//	report, err := replay.Load(ctx, replay.LoadConfig{Conn: nc, Sessions: 50, Turns: 40, Speed: 100})
//	report.WriteTable(os.Stdout)
//
// An agent of a load calls a tool with every turn, thinks for as long as a real one,
// sends the usage that it was billed, and swaps its history at a turn boundary when a
// compaction has come: its messages, then the agent's own turns after through.
//
// [Publisher] publishes the events of both.
//
// # Guarantees
//
//   - A session's turns go out one after the other, each after the answer to the
//     one before; sessions go out side by side.
//   - The report counts what is stored in OUTCOMES. The outcomes of a plain
//     subscription are compared with it; an undelivered one is an error.
//   - Where a history would have overflowed without compactd is an estimate: what
//     was saved is added to what the workers published, turn by turn.
//   - Every compacted history is checked by [validate.Messages], and in a load every
//     history that an agent made of one.
//   - Pauses and sizes of messages of a load have the quantiles of recorded sessions
//     ([Gaps], [Sizes]). A turn is two messages, and waits twice. The messages of an
//     agent depend on the seed and its number alone.
//
// # Concurrency
//
// Run and Load start their goroutines and return when they have ended.
//
// # On failure
//
// Run ends at the first turn that cannot be published, or when ctx ends. In a load an
// agent whose turn is not acknowledged for a minute ends, and counts as an error; the
// others go on. A compaction without messages, since they were too many, is not applied:
// its agent waits for the next one.
package replay
