// Package compaction is the pure core: it measures messages, keeps a token
// budget per session, and decides how a history that nears its window is
// reduced.
//
//	turn, msgs, err := compaction.ReadTurn(ledger, payload, seq) // measure
//	outs := compaction.Decide(ledger, turn, config)              // all judgement
//	compaction.Apply(ledger, turn, outs, config)                 // none
//	raw, err := compaction.Render(outs[0].View, texts)           // text, when it is needed
//
// # Guarantees
//
//   - Decide, Apply, Plan and Render are functions of their arguments: no clock,
//     no I/O, no randomness, no floats, no map ranged without order. The same log
//     and the same [Config] give the same outcomes, byte for byte.
//   - A ledger holds sequence numbers and sizes, never text.
//   - Tokens counted for text that compactd makes are a ceiling: a rendered
//     history never costs more than its plan said.
//   - A tool call and its results stay together; calls open at the end of the
//     last turn stay verbatim and last; the first user message is never truncated
//     when it is among the first four messages after the system's, though its
//     text may be cut where a history is too large without being long.
//   - A result that is not smaller than its input is never told, unless a summary
//     gives back what was truncated and the session stays below its trigger.
//   - A turn costs the same whatever the length of its session; a compaction
//     costs O(visible entries).
//
// # Concurrency
//
// A [Ledger] belongs to one goroutine. [Config] is immutable and shared.
//
// # On failure
//
// What is wrong with an event is an [events.Invalid] with a stable code, told as
// an outcome by [Reject]. Render fails only when the log no longer holds a text.
package compaction
