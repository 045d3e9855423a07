// Package stage makes a history smaller: it has the stages, and the plan that runs them in order.
//
//	history := stage.History{View: appendEntries, Format: format, Rate: rate}
//	plan := stage.MakePlan(history, &policy, window, stage.Means{Target: target, Truncate: true})
//	plan.Edits   // what to do, in the order it was decided
//	plan.Entries // the effective history after it
//	plan.After   // its tokens, a ceiling
//
// # Terms
//
// A [Draft] is an effective history under the stages. A stage edits it; a savepoint allows
// a stage that does not help to be rolled back. A pairing joins calls and results. A
// placeholder stands in for a cleared result or for a hidden range of messages; a
// truncation notice is the placeholder of a range that has no summary. A [Step] is a stage
// of a plan: [History.Plan] takes steps over one draft, and makes a [Plan] of what they did.
//
// The burden of a content is its age over the worth of its kind; the greatest burden goes first.
//
// # Order
//
//	prune ─▶ deduplicate ─▶ summarize (a summary that is ready) ─▶ truncate ─▶ repair
//
// Each runs only while the history is over its target, or where it is forced; repair always runs.
//
// # Guarantees
//
//   - A plan never makes a history larger, unless a step is forced.
//   - Calls and results stay together, and calls that await results are not touched.
//   - A stage costs what it changes; a plan costs O(entries).
//
// # Concurrency
//
// A draft belongs to one goroutine. A plan is a value.
//
// # On failure
//
// Nothing fails. A plan that helped nothing has no edits, and [Plan.Failure] gives the code.
package stage
