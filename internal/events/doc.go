// Package events owns the contract between agents and workers: subjects, payloads,
// message dialects and the table of codes.
//
//	turn, err := events.DecodeTurn(data)             // every problem in one *Invalid
//	msgs, err := turn.Format.ReadAll(turn.Messages)  // one model for all dialects
//	raw, err := turn.Format.Write(msgs[0])           // back in the form it came in
//	bad := validate.Messages(turn.Format, raw)       // valid for its provider?
//
// Package codec has the strict JSON, package dialect the messages of each provider, package
// validate the rules of the providers, and package schema the machine-readable form of the
// payloads. [Format] is the name of a dialect, and joins the dialects with the codes.
//
// # Terms
//
//   - An event is a payload that an agent or operator publishes, such as a [Turn]. An
//     outcome is what a worker publishes after it, such as a [Compacted].
//   - A dialect ([Format]) is the JSON of one provider's messages. A [Message] is the
//     model of a message of any dialect, and a [Part] the smallest piece of it that can
//     be edited.
//   - A [Code] is the stable name of a problem; [Codes] describes each.
//
// # Guarantees
//
//   - A message that was not edited is written back as the bytes that came in. Only half
//     surrogates, which JSON text can hold and Unicode cannot, become U+FFFD. (codec.Marshal
//     leaves out the white space between tokens.)
//   - The envelope of an event is strict: a duplicate key, a wrong type, trailing data or
//     a number out of range is a problem with a stable [Code]. Inside messages, system
//     and tools everything unknown stays as it is.
//
// # Concurrency
//
// All functions are safe for concurrent use; values have no hidden state. A [Turn] and a
// [Message] hold parts of the bytes they were read from, which must not change
// afterwards, and which stay in memory as long as any part does.
//
// # On failure
//
// Decoders return [*Invalid], which lists every problem found. No problem ever quotes the
// text of a message.
package events
