// Package disk reports the free space of a file system, whether it is scarce, and whether other
// users of the machine may read a directory.
//
//	free, size, err := disk.Space("/var/lib/compactd")
//	if err == nil && disk.Scarce(free, size) { … } // time to act
//
// # Guarantees
//
// Nothing is written.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// The error is the system's, for a path that cannot be read.
package disk
