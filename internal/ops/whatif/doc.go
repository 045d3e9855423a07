// Package whatif decides recorded sessions again under other policies, and shows
// side by side what would have been different.
//
//	s := whatif.FromTranscript(recorded)
//	r := whatif.NewReport(policies, whatif.Options{Delay: time.Minute})
//	err := r.Add(ctx, s) // once for each session
//	r.Write(os.Stdout)
//
// A session is replayed in the time of its own log, and its environment is simulated: the embedded
// summarizer answers each job of a policy [Options].Delay later.
//
// A session of a log has outcomes already. Until a policy emits something else
// than was published then, its events are as they were recorded, summaries included:
// the policy in force then gives the recorded outcomes, byte for byte. From
// there on the agent would have gone on from another history. Its messages stay
// as they were; what belongs to the recorded history alone is left out: refusals
// of a provider, rewinds, and usages counted after a later compaction.
//
// # Guarantees
//
//   - The same sessions and policies give the same report.
//   - All policies are measured with one ruler, the estimate of the profile
//     default, whatever they count with themselves.
//   - A session that is played holds its own events in memory, and nothing of
//     those before it.
//
// # Concurrency
//
// A [Report] is for one goroutine.
//
// # On failure
//
// An error states which session it comes from; the report is then of no use.
package whatif
