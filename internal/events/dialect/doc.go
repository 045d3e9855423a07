// Package dialect owns the messages of providers: the model that all dialects are read
// into, and for each dialect how its messages are read and written.
//
//	d := dialect.Of("anthropic")
//	m, err := d.Read(&dialect.Reader{Walker: codec.Walk(raw)})
//	out, err := d.Append(nil, &m) // rebuilt from its parts
//
// Most callers use events.Format, which adds the codes of the contract. A new dialect is
// one file here and one in package validate. See docs/adr/0025.
//
// # Terms
//
//   - A [Message] is the model of a message of any dialect, and a [Part] the smallest piece
//     of it that can be edited.
//   - A [Dialect] is a value: two functions, and what distinguishes a history of the dialect
//     from that of others. Packages stage and render branch on those fields alone.
//   - A [Reader] reads with texts, or scans without them into [Lists] that are used again.
//
// # A new dialect
//
// It is a value; nothing else branches on its name.
//
//  1. Name source and month of the provider's documentation in the code. Collect the texts of its refusals.
//  2. NAME.go here: the value, a function that reads a message and one that writes it. Add it to all in dialect.go, and
//     its name to internal/events/dialect.go.
//  3. internal/events/validate/NAME.go: what the provider refuses. It uses nothing of the reader. Add its rules to
//     rules_test.go, and plant an error for each.
//  4. testdata/dialects/NAME.json: messages with each kind of block. dialects_test.go has how they are read,
//     edited and made, internal/events/foreign.go the signs of its messages.
//  5. internal/compaction/dialects_test.go: conversations in it. Run properties with -rapid.checks=2000, then make
//     test-dialects, for which internal/ops/transcript/translate.go writes real sessions in every dialect.
//  6. docs/format/dialects.md: its description, its rules, and a row for each block. Run make schemas.
//
// # Guarantees
//
//   - A member that a dialect does not define stays in the Raw of its message or part, and is
//     written back as it came.
//   - Nothing panics on bytes that are not JSON.
//
// # Concurrency
//
// Dialects are values that do not change. Lists are for one goroutine.
//
// # On failure
//
// Read returns one of four sentinels, without any text of the message. Append fails where
// the parts make no message of the dialect, which is a defect of the caller.
package dialect
