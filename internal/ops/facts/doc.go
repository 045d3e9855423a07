// Package facts finds what an agent must keep of a conversation, and looks
// for it in a history that was made shorter.
//
//	f := facts.Of(turns, to)                  // of the messages up to a position
//	h := facts.Lines(history)                 // what the agent has now
//	for _, k := range facts.Kinds {
//		share, lost := h.Holds(k.Of(f))
//	}
//
// # Guarantees
//
// It shares no code with package summarize, which is measured by it: neither can
// hide what the other gets wrong.
//
// # Concurrency
//
// Functions are safe for concurrent use.
package facts
