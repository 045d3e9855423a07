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
//  2. pages.go: the newer valid one of bbolt's two meta pages; the file must have the length that it states. If the
//     newer meta page is damaged, the older one counts while its pages exist.
//  3. pages.go: every page from the root on: its id, kind and extent, no page twice, all elements inside, keys in order, the
//     first key of a page equal to the one in the branch above
//  4. head.go: the format; verify.go: every row: key and checksum; their count and digest against the meta row
//  5. verify.go: partition, partitions, and the boot, unless clean or synced
//
// # Guarantees
//
//   - Ledgers and cursor change in one transaction. After kill -9 or a full
//     disk, the file holds exactly one checkpoint: the last or an earlier one.
//   - [Open] reads and checks every page and every row with ordinary reads before
//     bbolt maps the file. So a damaged file neither ends the process nor yields
//     a ledger. The worst case is an older checkpoint, complete, with its own
//     cursor.
//   - [Store.Load] returns a ledger exactly as it was last written, or an error.
//     It compares a digest of the rows with the expected one. So it detects a missing
//     or outdated row, although each checksum matches.
//   - After [Store.Scrub] the file holds no byte of a ledger that the last or an
//     earlier checkpoint dropped.
//   - An untrusted file is renamed, never overwritten. The three newest are kept.
//   - One file belongs to one process. The lock is the kernel's and ends with the
//     process.
//
// Not promised: without Options.Sync a power loss loses the file (it is quarantined, because
// another boot left it open). Checksums are not signatures: they do not detect a deliberate change.
//
// # Concurrency
//
// A [Store] is safe for concurrent use and has no goroutines of its own. One
// checkpoint runs at a time; concurrent loads see the state before or
// after it. [Store.Each] sees one state throughout; its function must not call
// Checkpoint or Close. A store needs some 40 bytes of memory per session, one checkpoint, and a few
// MiB of mapped pages, which it releases.
//
// # On failure
//
// After a [*WriteError] nothing changed and the store stays usable; after [ErrFull], a
// later checkpoint succeeds once there is space. A [*DamagedError]
// means that the file was damaged while it was open. The store then returns only this error:
// close it and open it again, which quarantines the file. [ErrInUse] means that another
// process, or another Store of this process, has the file.
//
// One kind of damage ends the process: if a page of an open file refers to one of its ancestors,
// bbolt descends without end. The next Open detects it.
//
// docs/format/ledger-file.md describes the file.
package kv
