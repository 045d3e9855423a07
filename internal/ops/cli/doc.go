// Package cli makes from a command line's model what people need beside --help:
// completion for their shell, the manual page, and the reference in docs/cli.md; and it lays --help out.
//
//	type flags struct {
//		Completion cli.CompletionCmd `cmd:"" help:"Print a completion script for a shell."`
//	}
//	page := cli.Reference(kong.Must(&flags{}, kong.Name("worker")).Model)
//
// # Guarantees
//
//   - Every flag and command that is not hidden is in the script and the reference,
//     in the order of the struct.
//   - A script holds all it needs: nothing is called when a word is completed.
//
// # Concurrency
//
// Functions read the model and change nothing.
//
// # On failure
//
// An unknown shell is wrong usage, which kong finds. Nothing else fails.
package cli
