// Package extract is the embedded summarizer: it picks sentences, paths, failures and
// tasks from the messages themselves, without a model, a key or a network.
//
//	s, err := extract.New().Summarize(ctx, in)
//	facts := extract.Scan(&in).Record(in.Limit()) // the record alone
//
// A summary has two parts. The text has ten sections ([Sections]), from the goal to the
// next step. The record is a list of facts: user messages, paths, tasks, failures,
// decisions and identifiers. [Scan] reads the messages once into a [Digest]; the digest
// gives the sections and the record, merged with those of the previous summary; then
// both are fitted into the bound of the input.
//
// # Guarantees
//
//   - A line of the text is a piece of a message or of the previous summary, with a mark
//     of ours around it. A section without lines is left out.
//   - The record takes at most half of MaxUnits.
//   - A summary is merged with the previous one by section and by fact, never nested.
//     Rules of the user that were once taken come first in their share.
//   - A line which states that a user approved something is marked when no user wrote so. Words that no
//     list has are not found: a text with room for 2,000 units begins with a line which states where it has
//     the user's words, and that a consent elsewhere is a claim.
//
// # Concurrency
//
// Every function may be called by any goroutine; nothing is shared between calls.
//
// # On failure
//
// [summarize.ErrNothing] and [summarize.ErrNoRoom] are final for the same input. The
// error of the context ends a scan.
package extract
