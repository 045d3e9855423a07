// Package compaction is the pure core: it keeps a token budget per session and decides
// how a history that nears its context window is reduced.
//
//	turn := config.Turn(ledger, scanned, seq)                    // measure what events.Decoder read
//	outs, next := compaction.Decide(ledger, turn, config)        // every decision
//	next.Install(ledger)                                         // none
//	raw, _, err := render.Render(outs[0].View, texts)            // text, when it is needed
//
// The package owns the [Ledger] of a session and the decisions about its events. It takes
// decoded values, of events.Decoder and package stored. The packages below it own the rest, as functions of
// values; imports go up this list.
//
//	measure  sizes, entries and what they cost in tokens; context windows
//	policy   settings, presets, thresholds; from 0.8 of the input to tokens
//	stage    what makes a history smaller: prune, deduplicate, condense, truncate, repair
//	render   the texts of an effective history, in the session's dialect
//
// # Terms
//
// An entry is a tool call, a tool result or other content of one message. The effective
// history, a view, is what the agent sends next: the entries in view, edited. Each
// compaction or rewind makes a generation of it. An outcome is what the worker publishes
// about an event. A job requests a summary of a range of messages.
//
// # Lifecycle of a turn
//
//	events.Scanned ─▶ [Config.Turn] ─ Decide ─▶ outcomes ─▶ commit (worker)
//	                                        │  and [Next] ─ Install ─▶ ledger
//	        [Ledger.Budget] ≥ trigger? ─────┤ no: nothing, or a change of level
//	                                        ├ a summary may help: job ─▶ [NewResult] ─▶ Decide
//	                                        └ stages ─▶ plan ─▶ session.compacted
//
// Decide answers a session.overflow at once with the stages that need no model (overflow.go); the job for
// its summary goes to the emergency lane.
//
// # Guarantees
//
//   - Decide, Apply and render.Render are functions of their arguments: no clock, no I/O, no
//     randomness, no floats, no map ranged without order. The same log and the same
//     [Config] give the same outcomes, byte for byte.
//   - A ledger holds sequence numbers and sizes, never text.
//   - Tokens counted for text that compactd makes are a ceiling: a rendered history never
//     costs more than its plan reported.
//   - A tool call and its results stay together; calls open at the end of the last turn
//     stay verbatim and last; the first user message is never truncated when it is among
//     the first four messages after the system's, though its text may be cut where a
//     history is too large without being long.
//   - A result that is not smaller than its input is never emitted, unless a summary gives
//     back what was truncated and the session stays below its trigger.
//   - A turn costs the same whatever the length of its session; a compaction costs
//     O(visible entries).
//
// # Concurrency
//
// A [Ledger] belongs to one goroutine. [Config] is immutable and shared.
//
// # On failure
//
// An invalid event is an [events.Invalid] with a stable code; [Reject] makes an
// outcome of it. render.Render fails only when the log no longer holds a text.
package compaction
