// Package snapshot stores copies of ledger files, one for each partition, in the object store
// SNAPSHOTS. Any client of object stores can list and read them.
//
//	u, err := store.Begin(ctx, 3)              // before the file is copied
//	err = u.Put(ctx, marker, outcomes, file)
//	newest, err := store.Newest(ctx, 3)
//	err = store.Read(ctx, newest, w)
//
// # Guarantees
//
//   - [Store.Read] writes the bytes that were put, or returns an error.
//   - Every chunk of an upload has a fence: an owner that was suspended adds nothing to a newer
//     snapshot. After [Store.Erase] no content of a ledger file from before the call returns.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. An [Upload] is for one goroutine.
//
// # On failure
//
// [ErrNone]: there is no snapshot. [ErrGone]: a snapshot is no longer complete; read the newest
// again. [ErrMoved]: an upload was too late and left nothing. A worker without a snapshot reads
// the log instead.
package snapshot
