// Package connect opens connections to NATS: addresses, credentials, TLS, and the causes of a
// failed connect.
//
//	nc, err := connect.Open(ctx, connect.Options{URL: "nats://nats:4222", Creds: "agent.creds", Name: "agent"})
//	if e, ok := errors.AsType[*connect.Error](err); ok && e.Cause == connect.CauseUser { … }
//
// # Guarantees
//
//   - A connection that was open once reconnects until it is closed.
//   - No error and no target contains a password or a token.
//
// # Concurrency
//
// The package is safe for concurrent use. Callbacks of [Options] run on goroutines of the client
// and must not block.
//
// # On failure
//
// Only the first connect can fail. Its [*Error] has the [Cause], if known, describes a program at the
// address that is not a NATS server, and ends with advice.
package connect
