// Package fleet decides which partitions this worker serves among all workers of the log, and
// holds their leases.
//
//	f, err := fleet.New(ctx, fleet.Config{…})
//	err = f.Run(ctx, stopTime)
//
// Life of a held lease:
//
//	free ──acquire──► held ──renew──► held ──┬─ reassigned, stop ──► drained ──► released
//	                                         └─ fenced, failed ────► released ──► cool-down
//
// Terms: a member is a worker with a heartbeat; a holder has the lease of a partition; the
// membership is what this worker has received of both; a worker's identity is the name in
// worker.id, locked by its process.
//
// # Guarantees
//
// All workers that see the same members compute the same assignment (assign.go): everyone
// holds the same number of partitions, or one more. With each heartbeat a worker reads whether the log has
// more of them, and adds what it has of a growth under way. A lease keeps workers apart; what makes
// two owners harmless is the fence of the commits.
//
// # Concurrency
//
// One goroutine, Run, owns the leases and decides. Each partition is served by one of its own.
//
// # On failure
//
// A lease that cannot be renewed because the server does not answer stays held: no other
// worker can acquire it then. A partition that fails is opened again after pauses that grow
// to half a minute. Run ends with an error only for the log of another server, a second
// worker with this identity, or a stop that ran out of time.
package fleet
