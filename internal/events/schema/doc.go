// Package schema owns the machine-readable contract, which workers serve as it is: the
// JSON Schemas of the payloads and the OpenAPI document. Package schematest writes both.
//
//	data, err := schema.Payload("turn")
//
// # Guarantees
//
//   - The files are those of the program's version: tests compare them with the structs
//     of package events and with the routes of the worker (make schemas writes them).
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// A name without a file is an error, [fs.ErrNotExist].
package schema
