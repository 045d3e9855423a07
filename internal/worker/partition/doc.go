// Package partition serves one partition of the log: it reads events, decides them, and
// commits the outcomes behind a fence. A [Set] holds the partitions of one worker and their
// shared state.
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
//	  - opening: recovery takes six steps: 1. open the ledger file; 2. awaitSplit: find the split
//	    from the parent, or request it; 3. takeOver: fence the former owner with the next
//	    epoch; 4. findEnd: detect a truncated log, and roll the marker back; 5. resume
//	    from the file or from a newer snapshot; 6. replay: apply log and recorded outcomes up to the
//	    marker (recovery.go, restore.go, log_truncation.go).
//	  - serving: events are read, decided and committed, until the context ends or a component
//	    fails.
//	  - draining: reading has ended, and requests are refused. Decided events are committed, unless
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
//	    It waits while the queue (queue.go) is full or memory is short. A split (split.go) takes place
//	    between two events.
//	  - committer (commit.go) renders queued outcomes, and has at most one commit under way.
//	  - checkpointer (checkpoint.go, snapshots.go) writes ledgers into the file (file.go).
//	  - eraser (erase.go, retention.go) erases sessions, and drops expired ones. A separate goroutine
//	    publishes events of idle sessions (idle.go).
//
// Terms: a position is a place between two events of a partition; the marker is the header of
// a commit with the position of the last decided event; a checkpoint is the state of the file
// at a position; a snapshot is a copy of that file in the object store.
//
// # Guarantees
//
//   - Outcomes found in OUTCOMES are applied as recorded; only events after the marker are
//     decided. No outcome is published twice, and no outcome replaces another.
//   - A file is never ahead of the streams: a checkpoint is written once its position is
//     committed.
//   - After a take-over every commit of the former owner is refused.
//
// # Concurrency
//
//   - The goroutine of Serve changes the phase, and runs recovery, committer and checkpointer.
//   - The reader of the log runs intake.receive.
//   - A separate goroutine writes each checkpoint, one at a time.
//   - The eraser and the watch for idle sessions have a goroutine each. So have the first snapshot of
//     a partition that was split off, and fill, which refills a truncated log (log_truncation.go).
//
// They share queue, ledgers and file. Queue and ledgers have a lock each; no goroutine holds both. The
// lock of intake spans the decision on an event and its push into the queue: no split comes between them.
// The file is replaced in opening only. Any goroutine may call the exported methods of a Partition.
//
// # On failure
//
// A step that fails on a full store or a failing disk is retried, with Retrying events. Every other error
// ends Serve; the caller opens the partition again. ErrFenced ends Serve without a drain or a
// checkpoint: uncommitted outcomes are dropped, and the new owner decides their events again. A file
// that does not match the log is quarantined, and the partition replayed. Events that expired before
// their decision are skipped: hasEventOf (log_truncation.go) accepts the log as the same one,
// and intake continues at the first stored event.
package partition
