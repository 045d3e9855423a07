package service_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// Hostile actors: a request on a subject with a tenant is answered for that tenant only, as on the
// subject without one. So permissions on subjects separate tenants.
func TestTenantSubjects(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Run("a", observe.Listener{})
	env.Publish(events.KindTurn, "s1", workertest.Turn(1))
	env.AwaitDecided()
	var plain, own events.StatsResponse
	if e := env.Request(events.SubjectStats, `{"session":"s1"}`, &plain); e != nil || !plain.Known {
		t.Fatalf("without a tenant: %v, %+v", e, plain)
	}
	for _, payload := range []string{`{"session":"s1"}`, `{"tenant":"default","session":"s1"}`} {
		if e := env.Request("compactd.stats.default", payload, &own); e != nil || !cmp.Equal(plain, own) {
			t.Errorf("%s: %v, %s", payload, e, cmp.Diff(plain, own))
		}
	}
	for _, c := range []struct {
		tenant, payload string
		code            events.Code
	}{
		{"acme", `{"session":"s1"}`, events.CodeForbidden},
		{"acme", `{"tenant":"default","session":"s1"}`, events.CodeForbidden},
		{"default", `{"tenant":"acme","session":"s1"}`, events.CodeForbidden},
		{"acme", `{"tenant":"acme","tenant":"default","session":"s1"}`, events.CodeDuplicateKey},
		{"acme", `{"tenant":["default"],"session":"s1"}`, events.CodeBadType},
		{"acme", `{"tenant":"acme"}`, events.CodeMissingField},
		{"acme", `[]`, events.CodeBadJSON},
	} {
		for _, subject := range []string{events.SubjectContext, events.SubjectRecall, events.SubjectStats} {
			e := env.Request(events.OfTenant(subject, c.tenant), c.payload, &events.StatsResponse{})
			if e == nil || e.Code != c.code {
				t.Errorf("%s of %s, %s: %+v, not %s", subject, c.tenant, c.payload, e, c.code)
			}
		}
	}
}
