// Package workertest runs real workers on a real NATS server in the process, and has what tests
// of them share: turns, agents, listeners, and the comparison with what the log gives.
//
//	env := workertest.New(t, t.TempDir())
//	stop := env.Run("a", observe.Listener{})
//	env.Publish(events.KindTurn, "s1", workertest.Turn(1))
//	env.AwaitDecided()
//	env.WantRedecided()
//	stop()
//
// Tests of packages below internal/worker use it from an external test package, as it imports most
// of these packages.
//
// Set the fields of [Env] before a worker starts: they are the configuration of the next one.
//
// # Guarantees
//
// A worker of an Env fails the test when a history that it publishes is not valid for its
// provider. Servers, workers, listeners and connections end with the test.
//
// # Concurrency
//
// An [Env] is for the goroutine of its test. Any goroutine may publish and send requests.
//
// # On failure
//
// A step that fails ends the test. A wait ends it after [WaitLimit], and names what is missing.
package workertest
