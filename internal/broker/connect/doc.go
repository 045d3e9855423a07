// Package connect opens connections to NATS: addresses, credentials, TLS, and what a failed
// connect means.
//
//	nc, err := connect.Open(ctx, connect.Options{URL: "nats://nats:4222", Creds: "agent.creds", Name: "agent"})
//	if e, ok := errors.AsType[*connect.Error](err); ok && e.Cause == connect.CauseUser { … }
//
// # Guarantees
//
//   - A connection that was open once reconnects by itself, for ever, until it is closed.
//   - No error and no target contains a password or a token.
//
// # Concurrency
//
// All of it is safe for concurrent use. Callbacks of [Options] run on goroutines of the client
// and must not block.
//
// # On failure
//
// Only the first connect can fail. Its [*Error] has the [Cause] as far as it is known, names what
// answers at the address when that is no NATS server, and ends with what to do.
package connect
