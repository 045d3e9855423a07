// Package syncs answers syncs: it compares the history of an agent with the ledger of its
// session, publishes what is new as turns, waits until they are decided, and states what of the
// history to send.
//
//	s := syncs.New(host, config)
//	answer, err := s.Answer(ctx, request)
//
// The package owns the order of these steps, and the retries when other turns come in between.
// Package align matches histories and makes the parts; the [Host] has ledgers, texts and the log.
//
// # Terms
//
// The base of a turn is the state of the session that the turn follows: a number of turns and their
// digest. A sync is late when its wait ended before its turn was decided. See docs/adr/0031. A
// history that changes with each request is fitted: the answer follows from the request alone, and
// nothing is recorded. The root of a history is its first message that is no instruction. A branch
// is a session for another course of the history; its name follows from the history, so that any
// worker finds it.
//
// # Guarantees
//
//   - A turn names its base, so that a sync on an older session retracts no turn of another caller.
//   - A sync behind one that was late, on this worker, waits for the turns of that for a moment, and
//     else begins behind them. Where its history does not go on with them it is not recorded.
//   - Its id follows from session, base and content: a retry, here or at another worker, is the
//     same event.
//   - An answer rests on what is committed, or on its request alone.
//   - The budget of an answer counts all that is sent, also what no log has.
//   - A dry run publishes nothing.
//   - A history takes the place of that of the session as an edit, or by request; never because it
//     ends alike.
//
// The simulation of package partition runs this code with crashes at every step.
//
// # Concurrency
//
// A [Syncer] is for any number of goroutines; syncs of one session wait for each other.
//
// # On failure
//
// A sync that fails may have published its turn: the same history again finds it. Where other
// turns come in between three times the answer is stale_base.
package syncs
