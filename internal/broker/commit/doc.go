// Package commit writes the outcomes of a partition to OUTCOMES, behind a fence: the take-over of
// the partition, the atomic commit, the marker at its end, and the texts of configs.
//
//	c, found, err := commit.TakeOver(ctx, nc, commit.Claim{Partition: 3, Owner: id, Config: hash})
//	err = c.Commit(ctx, outcomes, commit.Marker{Cursor: seq, Config: hash})
//	m, err := commit.LastMarker(ctx, nc, 3)
//
// # Terms
//
// The fence is the sequence of the last message of the partition in OUTCOMES. Every commit names
// the sequence that it expects, and the server refuses a commit with another one. The [Marker]
// is a header on the last message of a commit: the cursor, the owner and its epoch.
//
// # Lifecycle of a commit
//
//	send ──► stored
//	  │ busy, no leader ──► send again, same fence
//	  │ wrong last sequence, or no answer ──► read the newest marker
//	  │        it names this commit    ──► stored
//	  │        it is the previous one  ──► send again, same fence
//	  │        a later epoch           ──► ErrFenced
//	  │        anything else           ──► ErrDiverged
//	  └ no space, too large ──► StoreFullError, TooLargeError; nothing stored
//
// # Guarantees
//
//   - A commit is stored whole or not at all, once, and only while no other owner has taken the
//     partition over. A retry never stores it twice: every attempt has the same fence, and
//     the fence moves only with a commit that is known to be stored.
//   - The last message of every commit has its [Marker], from which the next owner continues. It is
//     always read from the leader.
//   - Agents receive an outcome only after its commit, and no outcome of a refused commit: they
//     subscribe to the subjects that the stream republishes to.
//
// # Concurrency
//
// A [Committer] belongs to one goroutine. Give it a separate connection: on a shared one its
// acknowledgements queue behind incoming turns. The functions are safe for concurrent use.
//
// # On failure
//
// If the answer to a commit is lost, Commit reads the marker to resolve the result. It retries that
// read until its context ends. After [ErrFenced] or [ErrDiverged] stop, drop the state in memory,
// and open the partition again. [*StoreFullError] and [*TooLargeError] leave the committer
// unchanged.
package commit
