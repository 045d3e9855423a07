// Package spending adds up, from the log, what summaries by models cost each tenant in the present calendar month.
//
//	s := spending.New(spending.Config{JS: js, Config: parts.Compaction, Report: report})
//	go s.Run(ctx)
//	err := s.Allow(ctx, "acme", []string{"anthropic/claude-haiku-4-5"}) // [ErrBudget] if it allows none
//
// # Guarantees
//
//   - The sums are those of the events session.summary that the log has of the month, in UTC by the time of the log, at
//     the prices in force. Nothing else is kept: all workers add up the same, also after a restart.
//   - Each answer that a provider counted is in the sums, at the price of the model that gave it, also where it was of
//     no use and another wrote.
//   - jobs.Pool calls Allow before each job; it may have read the text ahead.
//   - Allow counts every summary that was stored before it was called, and no call that is under way: a
//     budget may be exceeded by what those cost, one for each slot of a lane and worker.
//
// After a restart events that left the log no longer count: erased sessions, and all older ones if the log keeps less
// than a month. Files that are summarized for an agent are no events, and do not count, nor
// do calls of a delivery that was not published: its worker ended, or the log took nothing.
//
// # Concurrency
//
// All of it is safe for concurrent use. Run is for one goroutine.
//
// # On failure
//
// Where the log cannot be read, Allow returns an error, and the job is tried again. Where the
// sums are behind the log, Allow waits for them until its context ends.
package spending
