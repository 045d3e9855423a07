// Package request sends requests to the workers, and joins the pages of a history.
//
//	var out events.StatsResponse
//	err := request.SendOf(ctx, nc, events.SubjectStats, tenant, in, &out)
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # On failure
//
// A refusal is an [*events.ServiceError]. Without any worker it is [ErrNoWorker].
package request
