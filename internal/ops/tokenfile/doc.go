// Package tokenfile is `worker token`: it writes, lists and removes lines of the file of --agents-tokens.
//
//	type flags struct {
//		Token tokenfile.Commands `cmd:""`
//	}
//	cmd.Bind(tokenfile.Env{File: "tokens", Out: screen})
//
// # Guarantees
//
// A token is printed once, when it is made, on a line of its own; all else goes to standard error. A list has
// no token and no hash, but the first twelve digits of each.
//
// # Concurrency
//
// Commands run one at a time; see package tokens about other processes.
//
// # On failure
//
// The file stays as it was.
package tokenfile
