// Package syncs answers syncs: it compares the history of an agent with the ledger of its
// session, publishes new messages as turns, waits until they are decided, and returns the parts
// of the history to send.
//
//	s := syncs.New(sessions, config)
//	answer, err := s.Answer(ctx, request)
//
// The package owns the order of these steps, and the retries after concurrent turns. Package align
// matches histories and makes the parts; [Sessions] has the ledgers and the log.
//
// # Terms
//
// The base of a turn is the state of the session that the turn follows: a number of turns and their
// digest. A sync is late if its wait ended before its turn was decided. See docs/adr/0031. A
// history that changes with each request is fitted: the answer depends only on the request, and
// nothing is recorded. The root of a history is its first message after the instructions. A branch
// is a session for another course of the history; its name follows from the history, so that any
// worker finds it.
//
// # Guarantees
//
//   - A turn names its base, so that a sync on an older state retracts no turn of another caller.
//   - After a late sync on this worker, the next one waits briefly for the late turns. If they are still
//     undecided, it publishes after them. If its history does not continue them, it is not recorded.
//   - The id of a turn follows from session, base and content: a retry, here or at another worker, is
//     the same event.
//   - An answer depends only on committed outcomes, or only on its request.
//   - The budget of an answer counts all messages to send, also those that are not in the log.
//   - A dry run publishes nothing.
//   - A history replaces that of the session only as an edit or on request; an equal end is not
//     enough.
//
// The simulation of package partition runs this code with crashes at every step.
//
// # Concurrency
//
// A [Syncer] is safe for concurrent use; syncs of one session wait for each other.
//
// # On failure
//
// A failed sync may have published its turn: the same history finds it again. After concurrent turns
// in every attempt the answer is stale_base.
package syncs
