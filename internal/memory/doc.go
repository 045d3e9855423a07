// Package memory keeps the memory of the Go runtime within the limit of GOMEMLIMIT or
// debug.SetMemoryLimit where the garbage collector alone would exceed it, and returns unused memory.
//
//	go memory.Release(ctx)  // once in a process
//	if memory.Relieve() { … } // before work that takes memory: less of it at once
//
// # Guarantees
//
// A process without a limit is never slowed.
//
// # Concurrency
//
// All functions may be called from any goroutine.
//
// # On failure
//
// Nothing fails: live data beyond the limit makes work slower, and stops none.
package memory
