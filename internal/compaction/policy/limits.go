package policy

// Limits are what an operator allows a tenant.
type Limits struct {
	// MonthCents bounds the cost of a tenant's summaries by models in a calendar month (UTC), in US cents; 0
	// is no bound.
	MonthCents int64 `json:"month_cents,omitzero"`
	// IdleDays is the number of days without an event after which a session is erased; 0 is never.
	IdleDays int64 `json:"idle_days,omitzero"`
	// Private keeps the tenant's content from models that write summaries, and its originals out of recall.
	Private bool `json:"private,omitzero"`
}
