// Package overflow reads what a provider said when it refused a call, and tells
// an input that was too long, which a compaction mends, from everything else.
//
//	f := overflow.Detect(e.Error, e.Status)   // e is an events.Overflow
//	if err := f.Refuse(); err != nil {        // a rate limit, a bad key, …
//		return compaction.Reject(event, err, config)
//	}
//	em := compaction.Emergency{
//		Stated:    f.InputLimit(),            // 0: the provider did not say
//		Available: available, Estimated: estimated, Repetition: ledger.overflows,
//	}
//	target := em.Target()
//
// Every text that a rule is made for stands under testdata, with the place where
// somebody met it.
//
// # Guarantees
//
//   - [Detect] is a pure function: the same error and status give the same
//     [Failure], whatever happened before.
//   - A rate limit or a quota is never an overflow, although its text may ask to
//     reduce the prompt: see [ClassAllowance].
//   - Token counts are between 0 and [events.MaxTokens]; 0 is not stated. They are
//     what the text says, and a provider may contradict itself: use them as bounds.
//   - Work is bounded: [MaxText] bytes of text, a few levels of nesting, and
//     regular expressions in linear time. Of an object only the members that hold
//     errors are read, so that a request echoed beside them says nothing.
//   - No text of the error is in a [Failure] or in the error of [Failure.Refuse].
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// There are no errors: what is not understood is [ClassUnknown]. A provider that
// is missing here is told as unknown, never as an overflow by guess.
package overflow
