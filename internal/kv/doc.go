// Package kv stores the ledgers of one partition in one bbolt file, together with their
// [Position] in the log. The file is a cache: the log and the published outcomes can always
// rebuild it.
//
//	s, bad, err := kv.Open(kv.Options{Path: "ledgers-3.db", Partition: 3, Partitions: 8})
//	if bad != nil { log.Print(bad.Moved, bad.Reason) } // a fresh file, cursor 0
//	if !matches(s.Position(), logInfo) { … }           // compare with the log before use
//	rows, err := s.Load(address)                       // nil without a ledger
//	err = s.Checkpoint(position, changes)              // all of it or nothing
//	err = s.Close()
//
// # Lifecycle of a file
//
//	missing ──► fresh ──► open ──► checkpoint, load, list … ──► closed
//	              ▲        │ a check fails, or damage is found at the next Open
//	              └────────┴── quarantined: renamed to .bad-n, the three newest are kept
//
// # Opening
//
//  1. file.go: the lock, flock on the file itself; it ends with the process
//  2. pages.go: the newer of the two meta pages of bbolt that are valid; the file must be as long as it states. Where
//     it is damaged, the older one counts, if its pages are there.
//  3. pages.go: every page from the root on: its id, kind and extent, no page twice, all elements inside, keys in order, the
//     first key of a page equal to the one in the branch above
//  4. verify.go: every row: key and checksum; their count and digest against the meta row
//  5. verify.go: format, partition, partitions, and the boot, unless clean or synced
//
// # Guarantees
//
//   - Ledgers and cursor change in one transaction. After kill -9, after a full
//     disk, the file holds exactly one checkpoint: the last or an earlier one.
//   - [Open] reads and checks every page and every row with ordinary reads before
//     bbolt maps the file, so a damaged file cannot end the process, and no
//     ledger comes from one. The worst case is an older checkpoint, whole, with
//     the cursor that belongs to it.
//   - [Store.Load] returns a ledger exactly as it was last written, or an error.
//     It has a digest of what to expect, so a row that is missing, or an old one, is
//     noticed though its own checksum matches.
//   - Once [Store.Scrub] returns, the file holds no byte of a ledger that was dropped
//     in the last checkpoint or before.
//   - A file that cannot be trusted is renamed, never overwritten. The three
//     youngest are kept.
//   - One file belongs to one process. The lock is the kernel's and ends with the
//     process.
//
// Not promised: without Options.Sync a power loss loses the file (it is quarantined, because
// another boot left it open). Checksums are not signatures: a deliberate change of the file is not
// noticed.
//
// # Concurrency
//
// A [Store] is safe for concurrent use and has no goroutines of its own. One
// checkpoint runs at a time; loads go on meanwhile and see the state before or
// after it. [Store.Each] sees one state throughout; its function must not call
// Checkpoint or Close. Memory is some 40 bytes per session, plus one checkpoint, plus a few
// MiB of the mapped file, whose pages are given back.
//
// # On failure
//
// A [*WriteError] means that nothing changed and the store can be used; when it
// is [ErrFull], a later checkpoint succeeds once there is room. A [*DamagedError]
// means that the file was damaged while it was open. The store returns nothing else from
// then on: Close, and Open again, which quarantines the file. [ErrInUse] means that another
// process, or another Store of this one, has the file.
//
// One damage ends the process: where a page of an open file refers to one of its ancestors, bbolt
// descends without end. The next Open finds it.
//
// docs/format/ledger-file.md describes the file.
package kv
