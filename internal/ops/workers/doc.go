// Package workers requests the workers of a fleet, and shows them as a table.
//
//	fleet, err := workers.Request(ctx, nc)
//	err = workers.Write(os.Stdout, fleet)
//
// # Guarantees
//
//   - A worker that does not answer is in the table with its name and its partitions.
//
// # Concurrency
//
// Functions may run at the same time.
//
// # On failure
//
// Errors are those of package request.
package workers
