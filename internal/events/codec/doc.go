// Package codec owns the JSON of the contract: it checks, walks, edits and writes raw
// JSON without changing a byte that was not edited.
//
//	err := codec.Check(raw)                      // exactly one JSON value
//	ms, err := codec.ReadObject(raw)             // members in their order, as parts of raw
//	ms = codec.SetMember(ms, "content", value)   // the others keep their bytes
//	raw = codec.WriteObject(ms)
//
// # Terms
//
//   - [Raw] is one JSON value as it came.
//   - A [Member] is one key of an object with its value.
//   - A [Walker] reads one value in a single pass and without a copy.
//
// # Guarantees
//
//   - Values that are read are parts of the input, with no capacity behind them: an
//     append to one cannot write into its neighbour.
//   - Strings, numbers and the order of keys are written as they came. Half surrogates
//     and bytes that are not UTF-8 become U+FFFD ([Clean]).
//   - The JSON library is used in this package alone: it has no tagged release yet, and
//     must be easy to replace.
//
// # Concurrency
//
// All functions are safe for concurrent use. A [Walker] is for one goroutine. Inputs
// must not change while parts of them are in use.
//
// # On failure
//
// [Check] is the only function that looks at every byte of the syntax. The others trust
// its verdict: of a value that is not JSON they return an error or a part of it, and
// never panic.
package codec
