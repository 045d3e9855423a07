// Package access has the flags by which worker and publisher say who they are to a
// NATS server, and what to do with them when the server refuses the connection.
//
//	type flags struct {
//		access.Flags
//	}
//	nc, err := connect.Open(ctx, f.With(connect.Options{URL: url}))
//	hint := access.Hint(err) // names flags and variables; "" for none
//
// # Guarantees
//
//   - No hint holds a password, nor the text of a file.
//
// # Concurrency
//
// Functions of their arguments alone.
//
// # On failure
//
// Nothing fails: the files are read by [connect.Open].
package access
