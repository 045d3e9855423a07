// Package align compares the history of an agent with the chain of its session, and lists the messages to
// send.
//
//	h := align.Read(format, request.Messages, 0)
//	known := h.Match(chain)                       // how much the session has of it
//	turns, err := h.Split(known.At, most)         // what is to be published
//	parts := align.Parts(h.Len(), outputs)      // what of it to send
//
// The package owns the matching and the parts. The caller decides which turns to publish, and
// which view to send.
//
// # Terms
//
// The lead are the instructions of the system or a developer that a history begins with. They
// are compared apart: a session has them as its system prompt. An index counts the
// messages of the whole history, also those that were not sent again.
//
// See docs/adr/0031.
//
// # Guarantees
//
//   - Everything is a function of its arguments.
//   - A turn is known only as a whole, by its digest; nothing is compared by likeness.
//   - The ranges of parts cover each index once, in order. Applied to the history they
//     give the outputs.
//
// # Concurrency
//
// Values are not changed once they are made; a [History] is for one goroutine.
//
// # On failure
//
// An error is an [events.Invalid] about a message of the caller.
package align
