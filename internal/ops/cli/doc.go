// Package cli makes from a command line's model what people need beside --help:
// completion for their shell and the manual page; and it lays --help out. Package clitest
// writes the reference in docs/cli.md.
//
//	type flags struct {
//		cli.Commands
//	}
//	k := cli.Arrange(kong.Must(&flags{}, kong.Name("worker"), cli.Help()), texts)
//
// # Guarantees
//
//   - Every flag and command that is not hidden is in the script and the page,
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
