// Package worker is the runtime: it reads the log partition by partition, lets
// package compaction decide, and commits the outcomes behind a fence.
//
//	w, err := worker.New(worker.Config{Read: nc, Commit: cn, Streams: streams, Compaction: cfg, Owner: "host-4711"})
//	go func() { <-w.Ready(); log.Print("ready") }()
//	err = w.Run(ctx) // until ctx ends, then drains
//
// A [Monitor] tells over HTTP how it is: health, readiness, metrics. There it
// answers what the NATS service answers, too.
//
// # Guarantees
//
//   - Up to the committed marker the outcomes found in OUTCOMES are applied as
//     recorded; only what lies beyond is decided. A restart, a new binary or a new
//     policy never tells an outcome twice, and never another in its place.
//   - An event is decided, rejected with a stable code, or recorded as known. A
//     malformed one, or one that makes the code panic, blocks nobody else.
//   - Memory runs ahead of what is committed, by a bounded number of events. What
//     was told is never ahead of the log.
//   - Workers on one log share its partitions. One that was replaced changes nothing
//     any more, whatever it believes: its commits are refused.
//   - Once session.erased is told, no byte that a session had before its
//     session.forget is in the streams, in the files of living workers or in the
//     snapshots; other sessions are replayed as before. A worker that dies on the way
//     leaves that to the next.
//   - No text of a conversation is logged or put into a rejection or a metric.
//
// # Concurrency
//
// Each partition has one goroutine that reads and decides, which owns the
// ledgers, and one that renders and commits. They share a queue. One goroutine
// decides which partitions are served, and keeps their leases.
//
// # On failure
//
// Run ends with an error when the outcomes are those of another log, or another worker has
// its folder. A lost connection or a full store is waited out. A partition that another
// worker took over is dropped; the lease says who is to serve it. Whatever else is wrong
// with one partition is reported, and the partition opened again, after pauses that grow to
// half a minute; the others go on.
package worker
