// Package lazyregexp compiles regular expressions at their first use. Compiled at the start of a process,
// the patterns of the summarizer were two thirds of the CPU time of a command that needs none of them.
//
//	var link = lazyregexp.New(`https?://\S+`)
//
//	link().MatchString(text)
//
// # Guarantees
//
// An expression is compiled at most once. A package tests each of its patterns: one with an error does
// not end the process at its start.
//
// # Concurrency
//
// Any number of goroutines may call the function that [New] returns.
//
// # On failure
//
// An expression with an error panics at its first use.
package lazyregexp
