// Package observe is the one seam for watching a worker: a [Listener] of optional funcs,
// [Tee] to join several, and [LogListener], which writes the log for operators.
//
//	l := observe.Tee(observe.LogListener(log), metrics.Listener())
//
// Every package of the worker reports what happens through a Listener and through nothing
// else: logs, metrics, readiness and tests are listeners.
//
// # Guarantees
//
// No event holds the text of a conversation. The logger writes one constant message for
// each kind of event; the names of its fields are in logging.go.
//
// # Concurrency
//
// The funcs are called from the goroutines of partitions, jobs and requests, several at a
// time. They must not block: a slow listener holds up the work that it watches.
//
// # On failure
//
// A listener returns nothing. One that panics ends the step that called it.
package observe
