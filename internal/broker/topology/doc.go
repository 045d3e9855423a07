// Package topology owns compactd's storage on a server: the streams SESSIONS, OUTCOMES and AUDIT, the
// buckets of the workers, the object store of snapshots, and the canary. It creates them,
// checks them, and reports their state.
//
//	streams, err := topology.Ensure(ctx, js, topology.Config{Partitions: 8})
//	state, err := topology.State(ctx, js, topology.LogStream)
//	found, err := topology.Inspect(ctx, js) // changes nothing
//
// # Guarantees
//
//   - [Ensure] never repartitions a log, as [Grow] and [Record] do, and never loosens a setting that the
//     protocol depends on. It reports every difference that it finds in one [*MismatchError].
//   - Several workers may call [Ensure] at once: it takes a stream that another worker has created
//     as it is.
//   - [State] includes every message that was acknowledged before the call. Only an answer of a
//     leader with a quorum counts: most copies must have followed it within the last three
//     seconds. [State] waits for such a leader.
//   - [Describe] and [Inspect] change nothing.
//
// # Concurrency
//
// The package is safe for concurrent use.
//
// # On failure
//
// [Ensure] waits up to a minute for a server that does not answer, or for a cluster that elects a
// leader. A [*StorageError] means that the server, or the account, cannot reserve the space.
// [ErrNoStreams] means that no worker has ever run against this server.
package topology
