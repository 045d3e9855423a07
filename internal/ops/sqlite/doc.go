// Package sqlite reads the tables of a file of SQLite 3, without SQLite: a program in pure Go
// costs a cold build more than all the rest of ours.
//
//	db, err := sqlite.Open(path)
//	defer db.Close()
//	parts, err := db.Table("part", "id", "data")
//	for ref, err := range parts.Rows() { row, err := parts.Read(ref) … }
//
// Source: sqlite.org/fileformat2.html.
//
// # Guarantees
//
//   - Nothing is written, and no lock is taken. Transactions that were in the write-ahead log
//     when the file was opened are read; a checkpoint beside it may make a row unreadable.
//   - Tables with a rowid, in UTF-8. There are no indexes, views or virtual tables.
//   - Whatever the file holds, reading ends, and a row has at most 64 MiB.
//
// # Concurrency
//
// A [DB] is for one goroutine.
//
// # On failure
//
// [ErrFormat] is of a file that is none of SQLite, or damaged.
package sqlite
