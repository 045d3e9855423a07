// Package sessions holds the example sessions, for programs that have no directory of them.
//
//	entries, err := sessions.Files.ReadDir(".") // example-….jsonl.gz
//
// # Guarantees
//
//   - The files are those of this directory when the program was built.
//
// # Concurrency
//
// Files only reads; any number of goroutines may use it.
//
// # On failure
//
// Nothing fails but a name that is not there.
package sessions
