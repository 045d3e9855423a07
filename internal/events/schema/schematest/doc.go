// Package schematest describes what travels, as JSON Schema (2020-12) and OpenAPI,
// made of the structs of package events and their comments.
//
//	all, err := schematest.All("../events") // what package schema embeds
//	err = schematest.Validate("turn", payload)
//
// # Guarantees
//
//   - A schema refuses no payload that a decoder of package events takes, and for
//     a single wrong field the two agree; rules between fields, sizes in bytes and
//     the shape of messages are the decoder's.
//   - Payloads that agents get have open lists: a new level or code does not break
//     a schema, as it must not break an agent. Known values are in examples.
//   - The same structs give the same bytes.
//
// # Concurrency
//
// All functions may be called at any time.
//
// # On failure
//
// All fails where a struct has a type without a JSON form, or a rule names a
// field that is not there: it is for tests, which write the files of docs/format.
package schematest
