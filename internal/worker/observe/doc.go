// Package observe is the only interface for observing a worker: a [Listener] of optional funcs,
// [Tee] to join several, and [LogListener], which writes the log for operators.
//
//	l := observe.Tee(observe.LogListener(log), metrics.Listener())
//
// Every package of the worker reports its events only through a Listener: logs, metrics, readiness
// and tests are listeners.
//
// # Guarantees
//
// No event holds the text of a conversation. The logger writes one constant message for
// each kind of event; the names of its fields are in logging.go.
//
// # Concurrency
//
// The funcs are called from the goroutines of partitions, jobs and requests, several at a
// time. They must not block: a slow listener delays the work that it observes.
//
// # On failure
//
// A listener returns no error. A panic in it ends the step that called it.
package observe
