// Package storelimit limits the bytes that one tenant may store: of session.compacted (outcomes.go) in an hour,
// in ten minutes; of events (log.go); and as a share of either stream (share.go).
//
//	q := storelimit.NewOutcomes(storelimit.Config{JS: js, Partitions: count, Assigned: assigned, Held: held, Most: most, Limited: report})
//	if reason := q.Over(tenant, bytes); reason != "" { /* publish without messages */ }
//	q.Charge(partition, tenant, bytes)
//	q.Rendered(partition, bytes)
//	// commit
//	q.Stored(partition, bytes)
//
// # Guarantees
//
// No decision depends on a limit: a compaction over it is published without its messages.
// A new owner of a partition reads back the last hour, so neither a restart nor a hand-over
// resets the count. The number of counted tenants is bounded; no tenant is counted too low. Rendered bytes
// count as held until a read of OUTCOMES that began after their commit.
//
// # Concurrency
//
// All partitions of a worker share [Outcomes]; a mutex guards it.
//
// # On failure
//
// If the bytes cannot be read back, the next commit reads them; until then only those of this
// worker count.
package storelimit
