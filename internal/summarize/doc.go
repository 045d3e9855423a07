// Package summarize condenses a range of a session into one summary: a text of
// ten sections, and a record of facts beside it.
//
//	s, err := extract.New().Summarize(ctx, summarize.Input{
//		Messages: msgs, Previous: last, MaxUnits: job.MaxUnits,
//	})
//	s.Header, s.Job = header, job.ID // the caller's part
//
// The package has the contract of summarizers, and the steps that all of them apply to input and output
// ([SanitizeInput], [RedactSummary]). The rest is in:
//
//	extract/   the embedded summarizer: no key, no network
//	llm/       language models write, in an order of preference; falls back to extract
//	model/     the contract with a language model
//	provider/  models of all usual providers over HTTP
//	quota/     what each tenant may use of models
//	sanitize/  finds secrets
//	attached/  separates the words of a user from the text of others in the same message
//	claim/     finds sentences that speak for the user
//	snippet/   bounded, harmless lines of text
//
// # Guarantees
//
//   - The message that [events.Summary.Message] makes of a summary never has more
//     than MaxUnits UTF-16 units; the record takes at most half of them.
//   - The same input gives the same bytes.
//   - The embedded summarizer invents nothing: a line of its text is a piece of a
//     message or of the previous summary, with a mark of ours around it. A section
//     without lines is left out.
//   - A model's text is checked against its input: the first request, the
//     user's rules and last words are put there by code, a rule that no user gave is
//     marked, identifiers and turns that it was not given go, and so does the form
//     of messages, calls and tags. An answer that is no summary is never used.
//   - No secret that package sanitize finds is sent to a model or is in a summary.
//   - The previous summary is merged by section and by fact, never nested: ten
//     merges in a row stay within the same shares of MaxUnits. Rules that the
//     user gave are carried whole, before all else of the text; a fold names the turns
//     of those that have no room.
//   - Text of the history is data: it is never part of the instructions to a model,
//     its lines cannot pass for those of a prompt, and every piece becomes one line
//     without control characters, of bounded length, cut between runes. Blocks
//     that agents inject into user messages, and what compactd itself wrote, are
//     not taken for the user's words.
//
// English words mark a rule, a decision or a discovery; sessions in
// other languages keep goal, files, errors, tasks, course and record.
//
// # Concurrency
//
// All functions are safe for concurrent use; nothing is kept between calls.
// Inputs are read only, and results share no memory that a caller may change.
//
// # On failure
//
// [ErrNothing] and [ErrNoRoom] are the reasons why there is no summary; another try with the same input ends
// the same. [RetryAfterError] states when another try may succeed; only a caller with [Input.MaxWait] gets
// it. The reasons why a model was not used go to [Input.OnAttempt].
package summarize
