// Package sqlite reads the tables of a file of SQLite 3, without SQLite. The driver in pure Go,
// modernc.org/sqlite, adds 4.6 MB to a program and 32 s of CPU to its cold build, half of the cost of
// nats-server, nats.go and bbolt together; these 430 lines read all that sessions need.
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
// [ErrFormat]: the file is not of SQLite, or is damaged.
package sqlite
