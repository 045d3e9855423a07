// Package rank makes sorted lists of sessions, and of tenants with the sums over their sessions.
//
//	page := rank.NewSessions(request)
//	page.Take(address, overview) // each session of a partition
//	page.Add(answer)             // or the answer of each partition's owner
//	return page.Page()
//
// # Guarantees
//
//   - The pages of an unchanged list have each row once: a cursor is the place of a row, which any worker
//     can read.
//   - While a page is made, it holds a small multiple of its limit of rows.
//
// # Concurrency
//
// One goroutine may use a list at a time.
//
// # On failure
//
// Nothing fails.
package rank
