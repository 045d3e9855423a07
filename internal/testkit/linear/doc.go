// Package linear measures how the cost of an operation grows with its input.
//
//	inputs := [2]input{made(n), made(4 * n)}
//	r := linear.RatioOf(n, 1.75, func(size int) linear.Cost {
//		return linear.Of(1, func() { operate(inputs[size]) })
//	})
//
// # Guarantees
//
// [Of] counts the CPU time of the calling thread, [OfProcess] that of all threads, and both count the
// bytes that are allocated. The least of several runs counts, so that other load of the machine adds
// little.
//
// # Concurrency
//
// One measurement at a time: bytes are counted for the process.
//
// # On failure
//
// It panics where the system has no clock for a thread.
package linear
