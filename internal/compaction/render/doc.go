// Package render writes the entries of a view as messages of the session's dialect, valid for its provider.
//
//	raw, err := render.Render(view, func(seq measure.Seq) ([]dialect.Message, error) {
//		return readTurn(seq)
//	})
//
// # Terms
//
// A [View] is an effective history in entries. [Texts] gives the messages of a turn of the
// log. A synthetic message is one that compactd adds: a truncation notice, a placeholder
// call or result. An exchange is an assistant's messages, the results of their calls, and
// everything up to the next assistant.
//
// # Guarantees
//
//   - Messages that no edit touches keep their bytes, and are not decoded.
//   - Synthetic messages have the same ids in every rendering of a session.
//   - A rendered history never costs more tokens than its plan reported.
//
// # Concurrency
//
// A view may be rendered by many goroutines at once, as far as its Texts allows it.
//
// # On failure
//
// Render fails when Texts does, or when a turn lacks a part that the view refers to.
package render
