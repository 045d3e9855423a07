package rank_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/rank"
)

// Tenants are in order of the money for input and summaries, whatever was saved; a model that turns
// do not name has no name.
func TestTenantsBySpent(t *testing.T) {
	all := rank.Tenants{}
	take := func(tenant string, m events.Model, c events.Cost, s events.SummaryCounts) {
		all.Take(events.Address{Tenant: tenant, Session: "s"}, &compaction.Overview{Model: m, Cost: c, Summaries: s})
	}
	take("a", events.Model{}, events.Cost{Input: 30, Saved: 1000}, events.SummaryCounts{})
	take("b", events.Model{Provider: "openai", Name: "gpt-4o"}, events.Cost{Input: 20, Summaries: 20}, events.SummaryCounts{Ready: 1, Failed: 1})
	take("b", events.Model{Name: "gpt-4o"}, events.Cost{Input: 1}, events.SummaryCounts{Ready: 2, Late: 3})
	var out events.TenantsResponse
	all.Page(&events.TenantsRequest{Ranking: events.Ranking{Sort: events.SortSpent}}, &out)
	got := map[string][]string{}
	var order []string
	for _, x := range out.Tenants {
		order = append(order, x.Tenant)
		for _, m := range x.Models {
			got[x.Tenant] = append(got[x.Tenant], m.Model)
		}
	}
	if diff := cmp.Diff(map[string][]string{"a": {""}, "b": {"gpt-4o", "openai/gpt-4o"}}, got); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "a"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if b := out.Tenants[0]; b.Cost.Spent() != 41 || b.Summaries != (events.SummaryCounts{Ready: 3, Late: 3, Failed: 1}) {
		t.Errorf("sums: %+v", b)
	}
}
