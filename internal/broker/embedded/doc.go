// Package embedded runs a NATS server with JetStream in this process. It stands
// apart from broker, so that what only speaks to a server does not link one.
//
// # Guarantees
//
//   - One directory belongs to one server. The lock is the kernel's and dies with
//     the process, kill -9 included.
//   - A server listens on the loopback interface unless it is told another host.
package embedded
