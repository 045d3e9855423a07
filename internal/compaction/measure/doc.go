// Package measure turns messages into entries, and entries into tokens.
//
//	entries := measure.Measure(message, measure.Entry{Seq: seq, Turn: 3})
//	rate := measure.NewRate(measure.Profiles["default"], "anthropic")
//	tokens := rate.Entry(&entries[0])
//
// # Terms
//
// A [weigh.Size] is a text's length in UTF-16 units, bytes and base tokens: tokens before a
// provider's multiplier. An [Entry] is one tool call, one tool result or a run of other
// content of a message, without its text. A [Profile] is one way to estimate tokens, a
// [Rate] is a profile for one provider. A [Meter] estimates, or counts with a [weigh.Counter].
// [Windows] is the table of context windows, a [PriceTable] that of list prices. [Regret] counts
// what an agent did again after a compaction.
//
// # Guarantees
//
//   - Everything is a function of its arguments, in integers. Shares are [PPM].
//   - Tokens of texts that compactd writes (placeholders, notices) are a ceiling.
//   - A text has at least one token for each 8 bytes, whatever its content.
//
// # Concurrency
//
// Values. The tables are not changed after the start of the program.
//
// # On failure
//
// [Windows.With] lists every window that is out of range. Nothing else fails.
package measure
