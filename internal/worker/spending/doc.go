// Package spending sums up from the log the cost of summaries by models, per tenant and calendar month.
//
//	s := spending.New(spending.Config{JS: js, Config: parts.Compaction, Report: report})
//	go s.Run(ctx)
//	err := s.Allow(ctx, "acme", []string{"anthropic/claude-haiku-4-5"}) // [ErrBudget] if it allows none
//
// # Guarantees
//
//   - The sums cover the events session.summary of the month in the log, in UTC by the time of the log, at
//     the prices in force. No other state is kept: all workers compute the same sums, also after a restart.
//   - The sums include each answer that a provider counted, at the price of its model, even if it was useless
//     and another model wrote the summary.
//   - jobs.Pool calls Allow before each job; it may have read the text ahead.
//   - Allow counts every summary that was stored before it was called, but no running call: those may
//     exceed a budget, one for each slot of a lane and worker.
//
// After a restart events that left the log no longer count: erased sessions, and expired events if the log keeps less
// than a month. Summaries of files are not events and do not count. Calls of a delivery without a published result,
// after a crash or a failed publish, do not count either.
//
// # Concurrency
//
// All methods are safe for concurrent use. Call Run only once.
//
// # On failure
//
// If the log cannot be read, Allow returns an error, and the job is retried. If the sums are behind
// the log, Allow waits for them until its context ends.
package spending
