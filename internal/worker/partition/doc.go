// Package partition serves one partition of the log: it reads events, decides them, and
// commits the outcomes behind a fence. A [Set] is the partitions of one worker and what they
// share.
//
//	set := partition.NewSet(js, partition.Config{…})
//	stop, err := set.Join(ctx)
//	err = set.Serve(ctx, stopTime, 3, caughtUp, drained) // until ctx ends or it fails
//
// Life of a partition:
//
//		opening ──► serving ──► draining ──► closed
//		   │           │ failed, fenced         ▲
//		   └───────────┴────────────────────────┘
//
//	  - opening (recovery.go; docs/adr/0022): 1. open the ledger file; 2. take over at the
//	    fence with the next epoch; 3. find out whether the log was truncated (truncation.go);
//	    4. resume from the file or from a newer snapshot (checkpoint.go, restore.go); 5. apply
//	    log and recorded outcomes up to the marker.
//	  - serving: intake.go reads and decides, commit.go renders and commits, checkpoint.go
//	    writes ledgers, erase.go erases sessions, idle.go and retention.go watch the clock.
//	  - draining: nothing is read; what is decided is committed and checkpointed. Before a
//	    hand-over a snapshot may be taken (snapshots.go).
//	  - closed: the file is closed, the lease may be released.
//
// Terms: a position is a place between two events of a partition; the marker is the header of
// a commit that holds up to where events are decided; a checkpoint is the ledgers in the file
// at a position; a snapshot is a copy of that file in the object store.
//
// # Guarantees
//
//   - Outcomes found in OUTCOMES are applied as recorded; only events behind the marker are
//     decided. No outcome is published twice, and none in the place of another.
//   - A file is never ahead of the streams: a checkpoint is written once its position is
//     committed.
//   - After a take-over every commit of the owner before is refused.
//
// # Concurrency
//
// One goroutine reads and decides; state guards the ledgers. One renders and commits. A
// queue, guarded by mu, joins them. Checkpoints, erasures and idle checks run beside them.
// The methods in reads.go may be called from any goroutine.
//
// # On failure
//
// A full store and a failing disk are waited out, with Retrying events. Every other error
// ends Serve; the caller opens the partition again. A file that does not fit the log is
// quarantined, and the partition replayed.
package partition
