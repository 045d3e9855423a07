// Package partition serves one partition of the log: it reads events, decides them, and
// commits the outcomes behind a fence. A [Set] is the partitions of one worker and what they
// share.
//
//	set := partition.NewSet(js, partition.Config{…})
//	stop, err := set.Join(ctx)
//	err = set.Serve(ctx, stopTime, 3, caughtUp, drained) // until ctx ends or it fails
//
// Phases of a partition (partition.go; any other transition panics):
//
//		opening ──► serving ──► draining ──► closed
//		   │ failed                             ▲
//		   └────────────────────────────────────┘
//
//	  - opening: recovery takes six steps: 1. open the ledger file; 2. awaitSplit: find where the
//	    partition was split off, or request that; 3. takeOver: fence the former owner with the next
//	    epoch; 4. findEnd: find whether the log was truncated, and roll the marker back; 5. resume:
//	    from the file or from a newer snapshot; 6. replay: apply log and recorded outcomes up to the
//	    marker (recovery.go, restore.go, log_truncation.go).
//	  - serving: events are read, decided and committed, until the context ends or a component
//	    fails.
//	  - draining: nothing is read, and requests are refused. Decided events are committed, unless
//	    a component has failed.
//	  - closed: the last checkpoint is written and the file closed. The lease may be released.
//
// Components, each with its own state:
//
//		log ──► intake ──► queue ──► committer ──► OUTCOMES
//		          │                      │
//		          ▼                      ▼ session.forgotten
//		       ledgers ──► checkpointer  eraser ──► log, OUTCOMES, file, snapshots
//		          ▲           │            │
//		          └── file ◄──┴────────────┘
//
//	  - intake (intake.go) decides events in the ledgers (ledgers.go), and queues the outcomes.
//	    It waits while the queue (queue.go) is full or memory is short. A split (split.go) comes between
//	    two events.
//	  - committer (commit.go) renders what is queued, and has one commit under way.
//	  - checkpointer (checkpoint.go, snapshots.go) writes ledgers into the file (file.go).
//	  - eraser (erase.go, retention.go) erases sessions, and drops expired ones. Another watch publishes
//	    events of idle sessions (idle.go).
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
//   - The goroutine of Serve changes the phase, and runs recovery, committer and checkpointer.
//   - The reader of the log runs intake.receive.
//   - A checkpoint is written in a goroutine of its own, one at a time.
//   - The eraser and the watch for idle sessions have a goroutine each; so have the first snapshot of
//     a partition that was split off, and fill.
//
// They share queue, ledgers and file. The first two have a lock each; no goroutine holds both. Intake has
// one around them, so that nothing comes between the decision on an event and its place in the queue.
// The file is replaced in opening only. The exported methods of a Partition may be
// called from any goroutine.
//
// # On failure
//
// A full store and a failing disk are waited out, with Retrying events. Every other error
// ends Serve; the caller opens the partition again. ErrFenced ends Serve without a drain or a
// checkpoint: uncommitted outcomes are dropped, and the new owner decides them again. A file that
// does not fit the log is quarantined, and the partition replayed. Events that aged away before
// they were decided are passed over: hasEventOf (log_truncation.go) takes the log for the same one,
// and intake goes on at the first event that is left.
package partition
