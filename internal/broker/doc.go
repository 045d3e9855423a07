// Package broker owns what compactd knows about NATS: the connection, the two
// streams, reading the log, the fenced commit, and the leases and members of a
// fleet of workers.
//
//	srv, err := embedded.Start(embedded.Config{Dir: dir})   // or none: an external server
//	nc, err := broker.Connect(ctx, broker.Options{InProcess: srv, Name: "worker"})
//	js, err := jetstream.New(nc)
//	streams, err := broker.Ensure(ctx, js, broker.Topology{CreateBytes: srv.StreamBytes()})
//	com, found, err := broker.TakeOver(ctx, nc, broker.Claim{Partition: 3, Owner: id, Config: hash})
//	stop, err := broker.ConsumeLog(ctx, js, broker.LogFrom{Partition: 3, Seq: found.Cursor + 1}, decide)
//	err = com.Commit(ctx, outcomes, broker.Marker{Cursor: seq, Config: hash})
//
// # Guarantees
//
//   - A commit is stored whole or not at all, once, and only while nobody else
//     has taken the partition over. Sending it again can never store it twice:
//     every try carries the same fence, and the fence moves only with a commit
//     that is known to be stored.
//   - The last message of every commit carries its [Marker], which names where
//     the next owner goes on. It is always read from the leader of the stream.
//   - A lease has one holder at a time by the server's clock, which is a reason to
//     begin, not a promise to the end: a holder may be late to notice. The fence is
//     what keeps it harmless.
//   - [State] has at least what was acknowledged before it was asked, and a read has it all
//     up to there: the state is believed only of a leader that most copies have followed
//     lately, and a read is over when the copy it reads from says that it has come so far.
//     What is asked of a leader otherwise, as [LastMarker], may be of one that was cut off
//     and does not know it yet, for a second: what is decided on it, a write has to confirm.
//   - Agents see an outcome only after its commit, never that of a refused one:
//     they listen to what the stream republishes.
//   - [Ensure] never repartitions a log and never loosens what the protocol rests
//     on; it reports every difference it finds in one [*TopologyError].
//
// # Concurrency
//
// A [Committer] belongs to one goroutine. Give it a connection of its own: on a
// shared one its acknowledgements queue behind incoming turns. Everything else
// is safe for concurrent use. Callbacks of [ConsumeLog] and [ReadStream] run one
// at a time and in order.
//
// # On failure
//
// Connections come back by themselves, for ever. A reader whose consumer is silent or gone
// has another one made, on another node if need be, and goes on where it was. No message
// stops it: one is known by its reply subject, whatever its headers say, and what two
// consumers in a row do not bring is read by its sequence. What is
// only asked is asked again while there is no answer: a node that is cut off never gives
// one. A commit whose answer is lost is settled by reading the marker; until that works,
// Commit waits, bounded by its context only. [ErrFenced] and [ErrDiverged] mean: stop, drop what is in memory,
// open the partition again. [*StoreFullError] and [*TooLargeError] mean: nothing
// of this try was stored, the committer is as before. What the log no longer
// holds is a [*GoneError].
package broker
