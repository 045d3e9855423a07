// Package worker is the runtime: it reads the log partition by partition, lets
// package compaction decide, and commits the outcomes behind a fence.
//
//	w, err := worker.New(worker.Config{Read: nc, Commit: cn, Streams: streams, Compaction: cfg, Owner: "host-4711"})
//	go func() { <-w.Ready(); log.Print("ready") }()
//	err = w.Run(ctx) // until ctx ends, then drains
//
// A [Monitor] reports health, readiness and metrics over HTTP, and answers there what the
// NATS service answers.
//
// Life of a worker:
//
//		joining ──► acquiring ──► ready ──► stopping ──► ended
//
//	  - joining: the config is stored, files are brought up to date with erasures, the fleet
//	    is joined.
//	  - acquiring: the partitions of its share are opened (worker/partition).
//	  - ready: its share is caught up and requests are answered.
//	  - stopping: nothing is read any more; what is decided is committed, checkpointed, and
//	    the leases are released, within DrainTimeout.
//
// Its packages:
//
//	partition    one partition of the log: reads, decides, commits, erases, grows
//	decide       events to outcomes, by the ledgers of a partition
//	payload      texts of outcomes, read from the log
//	outcomelog   outcomes, markers and configs that OUTCOMES has
//	storelimit   how many bytes a tenant may store in SESSIONS and in OUTCOMES
//	fleet        which worker serves which partition
//	jobs         summary jobs
//	spending     money for summaries, by tenant
//	syncs        answers to syncs
//	query        all other requests: over NATS, HTTP and in the process
//	agents       the listener for agents: HTTP, events, MCP, tokens
//	compress     the contract of gateways that have histories compressed
//	limit        memory and processors, shared among tenants
//	policies     policies that change while workers run
//	insight      windows and compactions for people
//	rank         sorted lists of sessions and tenants
//	redecide     recorded events decided again
//	observe      the seam for logs and metrics
//	tracing      spans
//	failpoint    where fault tests end the process
//	scenarios    tests of whole workers
//
// # Guarantees
//
//   - Up to the committed marker the outcomes found in OUTCOMES are applied as
//     recorded; only what lies beyond is decided. A restart, a new binary or a new
//     policy never publishes an outcome twice, and never another in its place.
//   - An event is decided, rejected with a stable code, or, if it was taken before, ignored: no
//     outcome. A malformed one, or one that makes the code panic, blocks no other session.
//   - Memory runs ahead of what is committed, by a bounded number of events. The
//     published outcomes are never ahead of the log.
//   - Workers on one log share its partitions. The commits of one that
//     was replaced are refused.
//   - Once session.erased is published, no byte that a session had before its
//     session.forget is in the streams, in the files of running workers or in the
//     snapshots; other sessions are replayed as before. If a worker stops on
//     the way, the next one completes it.
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
// its directory. A lost connection or a full store is waited out. A partition that another
// worker took over is dropped; the lease names its owner. Whatever else is wrong
// with one partition is reported, and the partition opened again, after pauses that grow to
// half a minute; the others go on.
package worker
