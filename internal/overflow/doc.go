// Package overflow reads what a provider reported when it refused a call, and distinguishes
// an input that was too long, which a compaction repairs, from everything else.
//
//	f := overflow.Detect(raw, 400)   // raw is what the agent got from its provider
//	f.Class                          // input_too_long
//	f.Provider, f.Actual, f.Limit    // anthropic, 219898, 200000
//	f.Refuse()                       // nil; for a rate limit an error that reports it
//
//	request, err := overflow.Read(payload, seq)   // of a session.overflow, for Decide
//
// Every text that a rule (rules.go) is made for is under testdata, with the place where
// a caller met it.
//
// # Guarantees
//
//   - [Detect] is a pure function: the same error and status give the same
//     [Failure], whatever happened before.
//   - A rate limit or a quota is never an overflow, although its text may ask to
//     reduce the prompt: see [ClassAllowance]. The one exception is an account that may not
//     send long contexts: waiting changes nothing, a shorter history passes.
//   - Token counts are between 0 and [events.MaxTokens]; 0 is not stated. They are
//     what the text states, and a provider may contradict itself: use them as bounds.
//   - Work is bounded: [MaxText] bytes of text, a few levels of nesting, and
//     regular expressions in linear time. Of an object only the members that hold
//     errors are read, so that a request echoed beside them contains nothing.
//   - No text of the error is in a [Failure] or in the error of [Failure.Refuse].
//   - Only words are classified: whether the session fits is [compaction]'s matter.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// [Detect] has no errors: what is not understood is [ClassUnknown], and is reported so,
// never taken for an overflow by guess. [Read] returns an [*events.Invalid] for a
// payload that is malformed.
package overflow
