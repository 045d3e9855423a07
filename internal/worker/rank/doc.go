// Package rank makes lists of sessions in one order, and of tenants with the sums over theirs.
//
//	page := rank.NewSessions(request)
//	page.Take(address, overview) // each session of a partition
//	page.Add(answer)             // or what the owner of each partition answers
//	return page.Page()
//
// # Guarantees
//
//   - The pages of a list that does not change have each row once: a cursor is the place of a row, which any worker
//     reads.
//   - A page in the making holds a few times as many rows as it may have.
//
// # Concurrency
//
// A list is for one goroutine.
//
// # On failure
//
// Nothing fails.
package rank
