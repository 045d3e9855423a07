// Package load publishes the turns of a synthetic fleet, whose agents behave as
// real ones do, and measures what they see.
//
//	report, err := load.Run(ctx, load.Config{Conn: nc, Sessions: 50, Turns: 40, Speed: 100})
//	report.WriteTable(os.Stdout)
//
// An agent calls a tool with every turn, thinks for as long as the real ones, sends
// the usage that it was billed, and swaps its history at the border of a turn when a
// compaction has come: its messages, then the agent's own turns after through.
//
// # Guarantees
//
//   - Pauses and sizes of messages have the quantiles of recorded sessions ([Gaps],
//     [Sizes]). A turn is two messages, and waits twice.
//   - What an agent says depends on the seed and its number alone; how much of it is
//     said may depend on the time, with Duration.
//   - Every history that an agent was told, or made of what it was told, is checked by
//     [events.Validate].
//   - Outcomes are counted as they are stored; what was not heard is an error.
//
// # Concurrency
//
// Run starts a goroutine for each agent and returns when they have ended.
//
// # On failure
//
// An agent whose turn nobody acknowledges for a minute ends, and counts as an error;
// the others go on. A compaction without messages, since they were too many, is not
// applied: its agent waits for the next one.
package load
