package scenarios_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"compactd/internal/broker/coord"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// While no worker has a partition that a growth makes, its parent answers for its sessions: all are listed, and nothing
// is missing. From the split on it is missing, until a worker serves it.
func TestListsOfGrowing(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
	leases := coord.NewLeases(env.JS, time.Hour)
	lease, err := leases.Acquire(t.Context(), 1, coord.Holder{Member: "other", Owner: "other"})
	if err != nil {
		t.Fatal(err)
	}
	env.LeaseTTL, env.Ledgers = time.Second, t.TempDir()
	env.Run("a", observe.Listener{})
	const sessions = 20
	moves := 0
	for i := range sessions {
		a := events.Address{Tenant: "default", Session: fmt.Sprint("s", i)}
		moves += events.PartitionOf(a, 2)
		env.Publish(events.KindTurn, a.Session, workertest.Turn(1))
	}
	env.AwaitDecided()
	if _, err := topology.Grow(t.Context(), env.JS); err != nil {
		t.Fatal(err)
	}
	follow := func(what string, ok func(*events.FleetResponse) bool) {
		t.Helper()
		workertest.Until(t, what, func() bool {
			var f events.FleetResponse
			if e := env.Request(events.SubjectFleet, `{}`, &f); e != nil {
				t.Fatal(e)
			}
			return ok(&f)
		})
	}
	want := func(listed int, missing ...int64) {
		t.Helper()
		all, last := env.Listed(`"tenant":"*","sort":"name"`, 7)
		if len(all) != listed || last.Total != int64(listed) || !slices.Equal(last.Missing, missing) {
			t.Errorf("%d sessions are listed, and %v are missing; want %d and %v", len(all), last.Missing, listed, missing)
		}
		var tenants events.TenantsResponse
		if e := env.Request(events.SubjectTenants, `{}`, &tenants); e != nil || !slices.Equal(tenants.Missing, missing) || tenants.Tenants[0].Sessions != int64(listed) {
			t.Errorf("tenants: %+v, %v", tenants, e)
		}
		var paged []events.SessionSummary
		for after := ""; ; {
			var out events.SessionsResponse
			if e := env.Request(events.SubjectSessions, fmt.Sprintf(`{"limit":3,"after":%q}`, after), &out); e != nil {
				if e.Code != events.CodeUnavailable || after != "1." || len(missing) == 0 {
					t.Errorf("behind %q: %+v", after, e)
				}
				break
			}
			if paged = append(paged, out.Sessions...); out.After == nil {
				break
			}
			after = out.After.String()
		}
		if len(paged) != listed {
			t.Errorf("%d sessions are listed in pages, want %d", len(paged), listed)
		}
	}
	follow("the growth", func(f *events.FleetResponse) bool { return len(f.Partitions) == 2 })
	follow("no partition is behind", func(f *events.FleetResponse) bool { return f.Partitions[0].Behind+f.Partitions[1].Behind == 0 })
	want(sessions)
	var health events.HealthResponse
	if e := env.Request(events.SubjectHealth, ``, &health); e != nil || health.Status != events.HealthOK || health.Partitions != 1 {
		t.Errorf("the worker is %+v, %v", health, e)
	}
	if err := env.Conn.Publish(events.OwnerSubject(0, "split"), nil); err != nil {
		t.Fatal(err)
	}
	follow("events of the child wait", func(f *events.FleetResponse) bool { return f.Partitions[1].Behind > 0 })
	want(sessions-moves, 1)
	if err := leases.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	follow("the child is served", func(f *events.FleetResponse) bool { return f.Partitions[1].Served })
	want(sessions)
}
