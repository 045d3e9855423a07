// Package summarize condenses a range of a session into one summary: a text of
// ten sections, and a record of facts beside it.
//
//	s, err := summarize.Embedded().Summarize(ctx, summarize.Input{
//		Format: events.Anthropic, Messages: msgs, Previous: last, MaxUnits: job.MaxUnits,
//	})
//	s.Header, s.Job = header, job.ID // the caller's part
//
// [Embedded] needs no key and no network: it extracts. [Record] is what every
// summarizer puts beside its text, whatever wrote the text.
//
// # Guarantees
//
//   - The message that [events.Summary.Message] makes of a summary never has more
//     than MaxUnits UTF-16 units; the record takes at most half of them.
//   - The same input gives the same bytes.
//   - Nothing is invented: a line of the text is a piece of a message or of the
//     previous summary, with a mark of ours around it. A section without lines is
//     left out.
//   - The previous summary is merged by section and by fact, never nested: ten
//     merges in a row stay within the same shares of MaxUnits. Rules that the
//     user gave, and that have once been taken, come first in their share.
//   - Text of the history is data: every piece becomes one line without control
//     characters, of bounded length, cut between runes. Blocks that agents inject
//     into user messages, and what compactd itself wrote, are not taken for the
//     user's words.
//
// What marks a rule, a decision or a discovery are English words; sessions in
// other languages keep goal, files, errors, tasks, course and record.
//
// # Concurrency
//
// All functions are safe for concurrent use; nothing is kept between calls.
// Inputs are read only, and results share no memory that a caller may change.
//
// # On failure
//
// [ErrNothing] and [ErrNoRoom] say that there is no summary, and why; another
// try with the same input ends the same. Redaction is not done here: the caller
// redacts before it stores.
package summarize
