// Package quota bounds what each tenant may ask of models.
//
//	q := quota.New(quota.Limits{CallsPerMinute: 10, TokensPerHour: 500_000}, store)
//	guarded := q.Guard(m) // the same q for all models
//
// A [Store] keeps what tenants have used. Workers that share one share the limits, and a worker
// that restarts goes on where it was. See docs/adr/0037.
//
// # Guarantees
//
//   - No more calls reach the models than CallsPerMinute at once, and as many again in
//     each minute, for each tenant. The use of one tenant is not taken from another.
//   - While a tenant owes tokens, no call is made for it. Tokens that calls under way
//     use beyond the share are owed, for a week at most, and paid off with time.
//   - A call over quota is refused at once, with a [*model.Error] of kind
//     [model.OverQuota], and costs nothing.
//   - A call reads and writes the store once, with a limit of tokens twice; more often only
//     where other workers write for the same tenant at the same time.
//
// Tokens are those that a provider counts. An answer whose provider does not say is
// estimated; a failed call counts as a call only.
//
// # Concurrency
//
// All methods are safe for concurrent use. Clocks of workers that differ give and take as much
// as they differ.
//
// # On failure
//
// A store that does not answer in time refuses calls, as a share that is used up does: models
// are not called on an account that cannot be read. Tokens of calls under way are written with
// the next call of their tenant; a worker that crashes before loses them. A worker keeps those
// of 10,000 tenants, the ones that call most.
package quota
