// Package tags hides messages as NeuroLink does, so that tests have histories with tags.
//
//	stored := tags.Condensed.Hide(history, 2, 9, "summary-1")
//	sent := tags.Effective(stored)
//
// # Guarantees
//
// Nothing is deleted: a hidden message names the one that replaces it. Hide, Show and Effective
// keep the bytes of every message they do not change.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// A message that is no JSON object stays as it is.
package tags
