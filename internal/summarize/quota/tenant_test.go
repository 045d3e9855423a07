package quota_test

import (
	"errors"
	"testing"
	"time"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/quota"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/summaries"
)

// E7, hostile actors: a tenant over its quota has the embedded summary at once, with
// the same record and whatever its maximum wait; no model is called, the listener is notified.
// Another tenant still has its model.
func TestTenantOverQuota(t *testing.T) {
	first, second := summaries.Echo(), summaries.Echo()
	q := quota.New(quota.Limits{CallsPerMinute: 1, TokensPerHour: 1_000_000}, summarizetest.InMemory())
	n := llm.New(q.Guard(first), q.Guard(second))
	var attempts []summarize.Attempt
	ask := func(tenant string) *events.Summary {
		t.Helper()
		attempts = nil
		s, err := n.Summarize(t.Context(), summarize.Input{
			Messages: summarizetest.History(1, 10), MaxUnits: 20_000, MaxWait: time.Hour,
			Tenant: tenant, OnAttempt: func(a summarize.Attempt) { attempts = append(attempts, a) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	within := ask("a")
	if within.Model != first.Name() || len(attempts) != 1 || attempts[0].Err != nil {
		t.Fatalf("within the quota: by %s, %+v", within.Model, attempts)
	}
	over := ask("a")
	if over.Model != extract.Model || len(over.Record) == 0 || over.Usage != (events.SummaryUsage{}) {
		t.Errorf("over the quota: by %s, %d lines of record, usage %+v", over.Model, len(over.Record), over.Usage)
	}
	for _, a := range attempts {
		if e, ok := errors.AsType[*model.Error](a.Err); !ok || e.Kind != model.OverQuota {
			t.Errorf("reported %+v", a)
		}
	}
	if len(attempts) != 2 || len(first.Requests) != 1 || len(second.Requests) != 0 {
		t.Errorf("%d attempts reported, models called %d and %d times", len(attempts), len(first.Requests), len(second.Requests))
	}
	if s := ask("b"); s.Model != first.Name() || first.Requests[1].Tenant != "b" {
		t.Errorf("another tenant: by %s, on the account of %q", s.Model, first.Requests[1].Tenant)
	}
}
