// Package quota bounds what each tenant may ask of models.
//
//	q := quota.New(quota.Limits{CallsPerMinute: 10, TokensPerHour: 500_000})
//	guarded := q.Guard(m) // the same q for all models
//
// # Guarantees
//
//   - No more calls reach the models than CallsPerMinute at once, and as many again
//     in each minute, for each tenant. What one tenant uses is not taken from another.
//   - While a tenant owes tokens, no call is made for it. What calls under way use
//     beyond the share is owed, and paid off with time.
//   - A call over quota is refused at once, with a [*model.Error] of kind
//     [model.OverQuota], and costs nothing.
//
// Tokens are those that a provider counts. An answer whose provider does not say is
// estimated; a failed call counts as a call only.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Quota counts in its process: a fleet of
// n workers lets a tenant have n times as much.
//
// # On failure
//
// Shares are in memory, and whole again after a restart. The 10,000 tenants that
// called last are kept; one that comes back after that many others begins again.
package quota
