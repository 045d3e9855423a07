// Package snippet makes one harmless line of a text: bounded, without what no reader sees,
// and without what would act or pass for a message where the line is shown.
//
//	line := snippet.Clip(text, 300)        // one line of at most 300 UTF-16 units
//	line = snippet.ClipNeutral(text, 300)  // the same for what a model or a tool wrote
//	for s := range snippet.Sentences(text) { … }
//
// # Guarantees
//
//   - A clipped text is cut between runes, and ends in an ellipsis when something is cut.
//   - [Inert] and [Neutral] keep the words; they change marks, tags and fences alone.
//   - [Neutral] of its own result changes nothing.
//
// # Concurrency
//
// Functions of their arguments alone.
//
// # On failure
//
// Nothing fails; broken UTF-8 becomes U+FFFD.
package snippet
