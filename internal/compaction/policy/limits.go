package policy

// Limits are what an operator allows a tenant.
type Limits struct {
	// MonthCents bounds the cost of a tenant's summaries by models in a calendar month (UTC), in US cents; 0
	// is no bound.
	MonthCents int64 `json:"month_cents,omitzero"`
	// IdleDays is the number of days without an event after which a session is erased; 0 is never.
	IdleDays int64 `json:"idle_days,omitzero"`
	// Private keeps the tenant's content from models that write summaries, and out of recall.
	Private bool `json:"private,omitzero"`
}

// Bounds of MonthCents and IdleDays.
const (
	mostCents = 1_000_000_000
	mostDays  = 36_500
)

func (p *Limits) validate(check func(ok bool, format string, args ...any)) {
	check(0 <= p.MonthCents && p.MonthCents <= mostCents, "limits.month_cents must be between 0 and %d", mostCents)
	check(0 <= p.IdleDays && p.IdleDays <= mostDays, "limits.idle_days must be between 0 and %d", mostDays)
}
