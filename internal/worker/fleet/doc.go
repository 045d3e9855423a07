// Package fleet decides which partitions this worker serves among all workers of the log, and
// holds their leases.
//
//	f, err := fleet.New(ctx, fleet.Config{…})
//	err = f.Run(ctx, stopTime)
//
// Life of a held lease:
//
//	free ──acquire──► held ──renew──► held ──┬─ reassigned, lease lost, stop ──► drained ──► released
//	                                         └─ fenced, failed ────────────────► released ──► cool-down
//
// renew in fleet.go notices that the own lease was lost; membership.go, that the lease of another
// worker ended.
//
// Terms: a member is a worker with a heartbeat; a holder has the lease of a partition; the
// membership is this worker's copy of both; a worker's identity is the name in
// worker.id, locked by its process.
//
// # Guarantees
//
// All workers that see the same members compute the same assignment (assign.go): each
// holds the same number of partitions, or one more. With each heartbeat a worker reads the table of partitions, and
// records its splits of a growth. A lease keeps workers apart; the fence of the commits makes two
// owners harmless.
//
// # Concurrency
//
// One goroutine, Run, owns the leases and decides. A separate goroutine serves each partition.
//
// # On failure
//
// If the server does not answer the renewal of a lease, the worker keeps the partition. If only this
// worker is cut off, another one acquires the lease, and the fence refuses the commits of this one. A failed partition is opened again after pauses that grow
// to half a minute. Run ends with an error only for another log, a second
// worker with this identity, or a stop that timed out.
package fleet
