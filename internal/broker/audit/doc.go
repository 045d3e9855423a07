// Package audit is the audit log. It records which caller read content of sessions, compacted, rewound or erased
// them, or changed policies or tokens. Its stream is AUDIT, whose messages expire after a year. Package service
// records reads and policies, partition the events, agents the tokens and the reads that only agents have.
//
//	l := audit.New(js)
//	err := l.Record(ctx, events.AuditEntry{Action: "context", Caller: "token 9f9f5111f7b2", Tenant: "acme"}, "")
//	err = audit.Read(ctx, js, audit.Selection{Tenant: "acme"}, fn)
//
// # Guarantees
//
//   - An entry has no content of a session. Clients cannot delete or purge entries.
//   - An entry with an id is stored once if it is recorded again within the duplicate window of the stream.
//
// # Concurrency
//
// The package is safe for concurrent use.
//
// # On failure
//
// Record returns an error if the entry may not be stored. The caller decides whether it continues.
package audit
