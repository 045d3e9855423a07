// Package partitions computes the partition of the log that decides an event.
//
//	t := partitions.New(8)
//	p := t.Of(address)         // events to come
//	p = t.At(address, seq)     // the event at a sequence of the log
//	from := t.Sources(p, seq)  // whose subjects to read for the events of p behind a sequence
//
// A log begins with a number of partitions, and a growth doubles it: partition p of n becomes p and p+n, at a
// sequence of its own, its split. Up to the split p decides an event, after it the partition of its session
// among 2n. Both follow from the session and the sequence alone. The subject of an event names the partition
// that a server's transform had for it, which may be older or newer: it is the place of the event, and not
// its partition. See docs/adr/0060.
//
// # A growth
//
//  1. Request: the table gets a growth without splits, and the transform its new spelling, in one update of
//     SESSIONS. Partitions are not divided yet, and leases of children can be had.
//  2. Prepare: the parent's owner makes a snapshot, if the newest is far behind. The owner of a child's lease makes
//     the child's file from that, without sessions that stay. A worker takes 2 to 4 for one child after the other, so
//     that few sessions wait at once.
//  3. Split: it requests the split. The parent's owner pushes a marker between two events, and decides what
//     follows without the child's sessions. Once the marker is committed it drops their ledgers.
//  4. Take over: the owner of the child commits a first marker, with the epoch behind the parent's, applies the events
//     up to the split by the parent's outcomes, and puts its file into the store.
//  5. Complete: with all splits known from the markers, one update writes table and transform.
//
// Before 3 a crash leaves a file that the next owner of the lease uses or makes again. Between
// push and commit nothing is stored, and the next owner of the parent decides the same events, the child's
// too. After the commit the child's sessions wait for 4, which any worker does from snapshot, log and markers. Step 5 is
// repeated by any worker that finds it undone, with the same bytes. A worker without the split in its table reads it
// from the parent's marker: requests to the parent are answered with wrong_partition.
//
// A power loss may truncate the log below a split. The split stays: the parent's owner rolls its marker back, keeps
// the child's ledgers, decides again up to the split, and publishes events that change nothing until the log
// has reached it. The child's owner waits for that, and rolls its marker back to the split.
//
// # Guarantees
//
//   - Each event has one partition, and every prefix of splits gives the events before them the same one.
//   - A partition that was split decides what it had before, and half of the sessions behind its split.
//   - A log that never grew has the partitions of its transform.
//
// # Concurrency
//
// A [Table] is a value; no method changes it.
//
// # On failure
//
// [Parse] refuses a text that no growth can have written. [Table.Grow] and [Table.Split] refuse a second
// growth before the first one is complete, and a second split of a partition at another sequence.
package partitions
