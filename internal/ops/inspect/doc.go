// Package inspect looks at what workers have made, and changes none of it.
//
//	r, err := inspect.Describe(ctx, js, "data/ledgers") // partitions, owners, cursors, lag, files
//	err = r.Write(os.Stdout)
//	d := inspect.Diagnose(ctx, inspect.Target{Conn: nc, Data: "data"}) // is all as it should be?
//	if !d.Healthy() { … }
//
// # Guarantees
//
// Streams, markers and ledger files are read only. Counting what a partition has
// yet to do makes a consumer for a moment, in the memory of the server.
//
// # Concurrency
//
// All functions may be called at any time, with workers running. A worker that
// starts while its ledger files are being examined may have to wait for them.
//
// # On failure
//
// Describe returns an error. Diagnose makes a finding of it and goes on with what it
// can still see.
package inspect
