// Package decide turns the events of one partition into outcomes and keeps its ledgers.
//
//	d := decide.New(config)
//	outcomes, hasText := d.Process(event)       // live: decide and apply
//	err := d.ApplyRecorded(event, outcomes)     // recovery: apply committed outcomes
//
// An [Event] is one message of the log. A [Decider] reads its payload, lets package
// compaction decide, and applies the outcomes to the ledger of the session. Ledgers are
// cached in memory; [Decider.Collect] returns the changed ones for a checkpoint, and
// [Decider.Evict] removes stored ones from memory.
//
// # Guarantees
//
//   - Same config and same events give the same outcomes, byte for byte, whether a ledger
//     was in memory or read back.
//   - Every event is decided or rejected with a stable code. A panic rejects only one event, or
//     resets only one session.
//
// # Concurrency
//
// One goroutine at a time may use a Decider; its partition guards it.
//
// # On failure
//
// A ledger that cannot be loaded sets LoadErr: the file is damaged, and the caller must stop
// and rebuild it from the log.
package decide
