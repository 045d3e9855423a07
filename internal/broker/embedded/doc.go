// Package embedded runs a NATS server with JetStream in this process. It is a separate
// package, so that a program that only connects to a server does not link one.
//
// # Guarantees
//
//   - One directory belongs to one server. The lock (flock) ends with
//     the process, even after kill -9.
//   - A server listens on the loopback interface unless another host is configured.
//
// # Concurrency
//
// A [Server] is safe for concurrent use.
//
// # On failure
//
// [Start] fails when another process holds the directory, which is a [*DirInUseError], or the port.
// A failure of the server after its start goes to the log of [Config].
package embedded
