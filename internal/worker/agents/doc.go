// Package agents is the edge for agents that use HTTP: all operations of an agent over
// NATS, on a separate listener, for clients with tokens.
//
//	e, err := agents.New(agents.Config{Listen: "127.0.0.1:8224", Tokens: "tokens", …})
//	err = e.Run(ctx)
//
//	POST …/turns, overflow, compact, rewind, end ── guard ── publish ──► Publish of package service
//	POST …/forget, of operators                  ── guard ── publish ───┘
//	POST …/token                                 ── guard ── mint
//	GET  …/context, history, stats, …            ── guard ── read ────► operations of package service
//	GET  …/events                                ── guard ── follower ◄── Hub ◄── OUTCOMES, in order
//	GET  /v1/events, of operators, on the monitor ────────── follower ◄───┘
//	POST /mcp/…                                  ── guard ── mcpserver ─► the same operations
//
// Terms: a client sends a token; the file has its SHA-256, the tenant and the role. A follower is a
// connection that receives events.
//
// # Guarantees
//
//   - A request reads, publishes and receives only sessions of the tenant of its token. The
//     tenant is checked before anything is read. An operator's token is valid for all tenants; a
//     session's token shows only one session, over MCP.
//   - An event is published under the subject and the message id that a NATS client would use,
//     and counts once, however often it is sent. An answer means that it is stored.
//   - A follower that reconnects with the id of its last event gets each later one once, in
//     order, from any worker. A follower that reads too slowly is disconnected.
//   - No tenant takes all memory or all slots: bodies, requests, followers and the outcomes that they
//     have not received yet are limited for each.
//
// # Concurrency
//
// An [Edge] is safe for concurrent use; Run runs once. A follower has a goroutine while it is
// written to. The mutex of the hub is never held during I/O.
//
// # On failure
//
// If an event cannot be stored, the answer is unavailable, and the event is safe to send again. If
// tokens or certificate cannot be read again, the earlier ones stay in force. When OUTCOMES is
// replaced or truncated, all followers are disconnected; they reconnect.
package agents
