// Package stored decodes what is stored into values of the pure core: the events of a
// session, the configs that markers name, and the headers of ledgers.
//
//	turn, messages, err := stored.ReadTurn(config, ledger, data, seq)
//	result, messages, err := stored.ReadResult(data, seq)
//	request, err := stored.ReadRequest(kind, data, seq)     // of every other kind
//	config, err := stored.ReadConfig(text, counters...)
//	rows, err := stored.Rows(ledger)                        // for a checkpoint
//	ledger, err := stored.ReadLedger(address, rows)
//
// The package owns no values: [compaction] defines what a decoded value means, and [events]
// what a payload may contain. It is where both meet, so that the core decodes nothing.
//
// # Terms
//
// A row is a named piece of a ledger as package kv stores it. The header is the one row
// that is JSON.
//
// # Guarantees
//
// All functions are pure: the same bytes give the same value. [ReadLedger] reads the
// output of [Rows] to an equal ledger.
//
// # Concurrency
//
// All functions are safe for concurrent use. A ledger that is passed belongs to the
// caller's goroutine.
//
// # On failure
//
// An event that is malformed is an [events.Invalid] with a stable code. A config or a
// header that cannot be read is an error that names it. The caller decides the
// consequence: a worker takes the ledger file as damaged.
package stored
