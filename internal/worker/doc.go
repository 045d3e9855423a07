// Package worker is the runtime: it reads the log partition by partition, lets
// package compaction decide, and commits the outcomes behind a fence.
//
//	w, err := worker.New(worker.Config{Read: nc, Commit: cn, Streams: streams, Compaction: cfg, Owner: "host-4711"})
//	go func() { <-w.Ready(); log.Print("ready") }()
//	err = w.Run(ctx) // until ctx ends, then drains
//
// A [Monitor] reports health, readiness and metrics over HTTP, and answers the requests of the
// NATS service there.
//
// Life of a worker:
//
//		joining ──► acquiring ──► ready ──► stopping ──► ended
//
//	  - joining: it stores the config, applies erasures to its files, and joins the fleet.
//	  - acquiring: it opens the partitions of its share (worker/partition).
//	  - ready: its share is caught up, and it answers requests.
//	  - stopping: reading has ended; it commits and checkpoints decided events, and releases
//	    the leases, within DrainTimeout.
//
// Its packages:
//
//	partition    one partition of the log: reads, decides, commits, erases, grows
//	decide       events to outcomes, by the ledgers of a partition
//	payload      texts of outcomes, read from the log
//	outcomelog   outcomes, markers and configs in OUTCOMES
//	storelimit   limits on the bytes of a tenant in SESSIONS and in OUTCOMES
//	fleet        the assignment of partitions to workers
//	jobs         summary jobs
//	spending     money for summaries, by tenant
//	syncs        answers to syncs
//	service      all requests and events of agents: over NATS, HTTP and in the process
//	agents       the listener for agents: HTTP, events, MCP, tokens
//	compress     the contract of gateways that request compressed histories
//	limit        memory and processors, shared among tenants
//	policies     policies that change while workers run
//	insight      windows and compactions for people
//	rank         sorted lists of sessions and tenants
//	redecide     recorded events decided again
//	observe      the seam for logs and metrics
//	tracing      spans
//	failpoint    points at which fault tests end the process
//	scenarios    tests of whole workers
//
// # Guarantees
//
//   - Up to the committed marker the outcomes found in OUTCOMES are applied as
//     recorded; only later events are decided. A restart, a new binary or a new
//     policy never publishes an outcome twice, and never replaces one.
//   - An event is decided, rejected with a stable code, or, as a repeated one, ignored without an
//     outcome. A malformed event, or one that makes the code panic, blocks no other session.
//   - Memory runs ahead of the commits by a bounded number of events. The
//     published outcomes are never ahead of the log.
//   - Workers on one log share its partitions. The server refuses commits of a
//     replaced worker.
//   - Once session.erased is published, no byte of a session from before its
//     session.forget is in the streams, in the files of running workers or in the
//     snapshots; other sessions are replayed as before. If a worker stops during
//     an erasure, the next one completes it.
//   - No text of a conversation is logged or put into a rejection or a metric.
//
// # Concurrency
//
// Each partition has one goroutine that reads and decides, which changes the
// ledgers, and one that renders and commits. They share a queue. One goroutine
// decides which partitions the worker serves, and keeps their leases.
//
// # On failure
//
// Run ends with an error if the outcomes belong to another log, or another worker has
// its directory. It retries through a lost connection or a full store. It drops a partition that another
// worker took over; the lease names its owner. Any other error of a partition is reported, and the
// partition opened again, after pauses that grow to half a minute; the other partitions continue.
package worker
