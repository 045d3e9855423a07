// Package events owns what travels between agents and workers: subjects,
// payloads, message dialects, the strict codec and the table of codes.
//
//	turn, err := events.DecodeTurn(data)             // every problem in one *Invalid
//	msgs, err := turn.Format.ReadAll(turn.Messages)  // one model for all dialects
//	raw, err := turn.Format.WriteAll(msgs)           // back in the form they came in
//	bad := validate.Messages(turn.Format, raw)       // valid for its provider?
//
// # Guarantees
//
//   - A message that nobody edited is written back as the bytes that came in.
//     Only half surrogates, which JSON text can hold and Unicode cannot, become
//     U+FFFD. ([Marshal] leaves out the white space between tokens.)
//   - The envelope of an event is strict: a duplicate key, a wrong type, trailing
//     data or a number out of range is a problem with a stable [Code]. Inside
//     messages, system and tools everything unknown stays as it is.
//   - Package events/validate shares no code with the readers or with the repair in
//     package compaction, so that
//     the one can check the other.
//
// # Concurrency
//
// All functions are safe for concurrent use; values have no hidden state. A
// [Turn] and a [Message] hold parts of the bytes they were read from, which must
// not change afterwards, and which live as long as any part does.
//
// # On failure
//
// Decoders return [*Invalid], which lists every problem found. No problem ever
// quotes the text of a message.
package events
