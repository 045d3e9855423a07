// Package weigh measures texts: UTF-16 units, bytes, and tokens by the classes of their
// characters, in one pass over the bytes.
//
//	size := weigh.Text(s)        // of a text
//	size = weigh.JSON(args)      // of JSON, as a model writes and reads it
//	q := weigh.String(raw)       // of the text that a JSON string encodes, and whether it is one
//
// It is below package codec, so that a string is measured in the pass that checks it.
// docs/estimation.md has the model and its error.
//
// # Guarantees
//
//   - Sizes are functions of the bytes: no profile, no provider, no floats.
//   - A text has at least a token for each [FloorBytes] bytes.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// [String] reports what is not a JSON string. Nothing else fails.
package weigh
