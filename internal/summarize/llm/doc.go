// Package llm lets language models write summaries, and falls back to the embedded
// summarizer when no model gives a usable answer.
//
//	s := llm.New(first, second)
//	summary, err := s.Summarize(ctx, in)
//
// For each model in order: build the prompt (builder.go, prompt.go, excerpt.go), complete
// it, accept or refuse the answer (answer.go), and merge it (accept.go): what the model
// wrote is held against the prompt (ground.go, links.go), its rules against the words of the
// user ([extract.Digest.RulesOf]). The record is made by code, whichever writes the text
// ([extract.Record]).
//
// # Guarantees
//
//   - The input is sanitized before any of it is part of a prompt, and the summary is
//     redacted again before it is returned.
//   - The first request, the rules and the last words of the user are put there by code.
//     A rule that no user gave is marked. Identifiers, links and turns that the prompt
//     does not have are replaced.
//   - Text of the history is data: it is never part of the instructions, and its lines
//     cannot pass for those of a prompt.
//   - [PromptVersion] changes with every change of the instructions.
//
// # Concurrency
//
// A [Summarizer] may be used by any number of goroutines.
//
// # On failure
//
// An unusable answer is an [*Unusable], reported to OnAttempt of the input.
// When models are busy, no other answer was paid for, and the caller has MaxWait, the error
// is a [*summarize.RetryAfterError]; else the embedded summarizer writes.
package llm
