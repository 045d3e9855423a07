// Package storelimit bounds the bytes that one tenant may store: of session.compacted (outcomes.go) in an hour,
// in ten minutes, and as a share of OUTCOMES; of events (log.go) as a share of SESSIONS.
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
// No decision depends on a bound: a compaction over one is published without its messages.
// A new owner of a partition reads back the last hour, so neither a restart nor a hand-over
// begins a new one. Tenants are counted within a bound, and none too low. Rendered bytes
// count as held until a reading of OUTCOMES that began after their commit.
//
// # Concurrency
//
// [Outcomes] is shared by all partitions of a worker; a mutex guards it.
//
// # On failure
//
// Bytes that cannot be read back are read at the next commit; until then only those of this
// worker count.
package storelimit
