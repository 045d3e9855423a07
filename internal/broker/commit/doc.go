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
// it as the one it expects, and the server refuses a commit that expects another one. The [Marker]
// is a header on the last message of a commit: the cursor, the owner and its epoch.
//
// # Lifecycle of a commit
//
//	send ──► stored
//	  │ busy, no leader ──► send again, same fence
//	  │ wrong last sequence, or no answer ──► read the newest marker
//	  │        it names this commit    ──► stored
//	  │        it is the one before    ──► send again, same fence
//	  │        a later epoch           ──► ErrFenced
//	  │        anything else           ──► ErrDiverged
//	  └ no room, too large ──► StoreFullError, TooLargeError; nothing stored
//
// # Guarantees
//
//   - A commit is stored whole or not at all, once, and only while no other owner has taken the
//     partition over. Sending it again never stores it twice: every try has the same fence, and
//     the fence moves only with a commit that is stored for certain.
//   - The last message of every commit has its [Marker], from which the next owner goes on. It is
//     always read from the leader.
//   - Agents receive an outcome only after its commit, and none of a refused commit: they
//     subscribe to what the stream republishes.
//
// # Concurrency
//
// A [Committer] belongs to one goroutine. Give it a connection of its own: on a shared one its
// acknowledgements queue behind incoming turns. The rest is safe for concurrent use.
//
// # On failure
//
// A commit whose answer is lost is resolved by reading the marker. Until that works Commit waits,
// bounded by its context only. [ErrFenced] and [ErrDiverged] mean: stop, drop what is in memory,
// open the partition again. After [*StoreFullError] and [*TooLargeError] the committer is as
// before.
package commit
