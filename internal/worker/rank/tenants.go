package rank

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// maxModels limits the listed models of a tenant.
const maxModels = 20

// Tenants holds the sums of each tenant, by name.
type Tenants map[string]*events.Tenant

// Take adds a session.
func (all Tenants) Take(a events.Address, o *compaction.Overview) {
	sums := sumsOf(o)
	all.Add(&events.Tenant{
		Tenant: a.Tenant, LastTurn: o.LastTurnAt, Sums: sums, Levels: map[events.Level]int64{o.Budget.Level: 1},
		Models: []events.ModelSums{{Model: modelName(o.Model), Sums: sums}},
	})
}

// modelName returns provider/model, without an empty part.
func modelName(m events.Model) string { return strings.Trim(m.Provider+"/"+m.Name, "/") }

func sumsOf(o *compaction.Overview) events.Sums {
	one := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	return events.Sums{
		Sessions: 1, Turns: o.Turns, Input: o.Budget.EstimatedInput, Saved: int64(o.Saved), Generations: o.Budget.Generation,
		Prepared: one(o.Prepared), Waiting: one(o.Waiting), Rereads: o.Repeated.Rereads, Reruns: o.Repeated.Reruns, Cost: o.Cost, Summaries: o.Summaries,
	}
}

// Add adds the sums of a tenant in one partition.
func (all Tenants) Add(t *events.Tenant) {
	sum := all[t.Tenant]
	if sum == nil {
		all[t.Tenant] = t
		return
	}
	sum.Sums = sum.Plus(t.Sums)
	sum.LastTurn, sum.OutcomeBytes = max(sum.LastTurn, t.LastTurn), sum.OutcomeBytes+t.OutcomeBytes
	for level, n := range t.Levels {
		sum.Levels[level] += n
	}
	for _, m := range t.Models {
		addModel(sum, m)
	}
}

func addModel(t *events.Tenant, m events.ModelSums) {
	for i := range t.Models {
		if t.Models[i].Model == m.Model {
			t.Models[i].Sums = t.Models[i].Plus(m.Sums)
			return
		}
	}
	t.Models = append(t.Models, m)
}

// Page puts the page of a request into an answer.
func (all Tenants) Page(in *events.TenantsRequest, out *events.TenantsResponse) {
	place := func(t *events.Tenant) events.Place {
		return events.Place{Value: tenantValue(in.Sort, t), Address: events.Address{Tenant: t.Tenant}}
	}
	rows := slices.SortedFunc(maps.Values(all), func(a, b *events.Tenant) int { return in.Compare(place(a), place(b)) })
	rows = slices.DeleteFunc(rows, func(t *events.Tenant) bool {
		return !strings.Contains(strings.ToLower(t.Tenant), strings.ToLower(in.Text)) || in.After != (events.Place{}) && in.Compare(place(t), in.After) <= 0
	})
	most := int(cmp.Or(in.Limit, events.DefaultSessions))
	if len(rows) > most {
		rows = rows[:most]
		out.After = new(place(rows[most-1]))
	}
	out.Total, out.Tenants = int64(len(all)), make([]events.Tenant, len(rows))
	for i, t := range rows {
		slices.SortFunc(t.Models, func(a, b events.ModelSums) int {
			return cmp.Or(cmp.Compare(b.Input, a.Input), cmp.Compare(a.Model, b.Model))
		})
		t.Models = t.Models[:min(len(t.Models), maxModels)]
		out.Tenants[i] = *t
	}
}

// tenantValue returns the sort value of a tenant.
func tenantValue(by events.Sort, t *events.Tenant) int64 {
	switch by {
	case events.SortInput:
		return t.Input
	case events.SortSessions:
		return t.Sessions
	case events.SortSaved:
		return t.Saved
	case events.SortSpent:
		return t.Cost.Spent()
	case events.SortLost:
		return t.Cost.Lost
	case events.SortSummaries:
		return t.Cost.Summaries
	case events.SortRejected:
		return t.Rejected
	case events.SortLastTurn:
		return t.LastTurn
	}
	return 0 // sorted by name
}
