package service_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
)

// The sessions of all tenants are listed in one order, whichever workers serve them, in memory or not,
// each once whatever the size of a page; texts and levels select some. Tenants have the sums.
func TestRanking(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.Ledgers, env.MaxLedgers, env.CheckpointEvery = t.TempDir(), 4, 20*time.Millisecond
	env.LeaseTTL = time.Hour // a slow worker loses no partition
	env.Run("a", owners.Listener("a"))
	turns := map[string]int64{}
	for i := range 30 {
		tenant, session := fmt.Sprintf("t%d", i%3), fmt.Sprintf("s%02d", i)
		for n := range i%5 + 1 {
			env.PublishFor(tenant, events.KindTurn, session, workertest.Turn(n+1))
		}
		turns[session] = int64(i%5 + 1)
	}
	env.PublishFor("t0", events.KindTurn, "s00", []byte(workertest.BadTurn))
	env.AwaitDecided()
	env.Ledgers = t.TempDir()
	env.Run("b", owners.Listener("b"))
	owners.Await(map[string]int{"a": 2, "b": 2})
	for _, limit := range []int{1, 7, 500} {
		all, last := env.Listed(`"tenant":"*","sort":"turns"`, limit)
		if len(all) != 30 || last.Total != 30 || last.Matched != 30 || len(last.Missing) > 0 {
			t.Fatalf("in pages of %d: %d sessions, %+v", limit, len(all), last)
		}
		if !slices.IsSortedFunc(all, func(a, b events.SessionSummary) int { return int(b.Turns - a.Turns) }) {
			t.Errorf("in pages of %d they are out of order: %v", limit, names(all))
		}
		for _, s := range all {
			if turns[s.Session] != s.Turns || s.Model == "" || s.TriggerTokens == 0 || s.Growth == 0 || s.TurnsLeft == nil {
				t.Errorf("%+v", s)
			}
		}
	}
	for in, want := range map[string]int{
		`"tenant":"t1","sort":"fill"`: 10, `"tenant":"*","text":"S0"`: 10, `"tenant":"*","text":"none"`: 0, `"tenant":"*","level":"blocking"`: 0,
		`"tenant":"*","sort":"remaining","order":"desc"`: 30, `"tenant":"*","sort":"name","order":"desc"`: 30,
	} {
		all, last := env.Listed(in, 4)
		if len(all) != want || last.Matched != int64(want) {
			t.Errorf("%s: %d sessions, want %d; %d match", in, len(all), want, last.Matched)
		}
	}
	if e := env.Request(events.OfTenant(events.SubjectSessions, "t1"), `{"tenant":"*"}`, nil); e == nil || e.Code != events.CodeForbidden {
		t.Errorf("a tenant that requests all sessions got %+v", e)
	}
	if e := env.Request(events.SubjectTenants, `{"partition":4}`, nil); e == nil || e.Code != events.CodeOutOfRange {
		t.Errorf("the tenants of no partition: %+v", e)
	}
	wantTenants(env)
}

// wantTenants checks the sums of three tenants with ten sessions each.
func wantTenants(env *workertest.Env) {
	env.T.Helper()
	var all []events.Tenant
	for after := ""; ; {
		var out events.TenantsResponse
		if e := env.Request(events.SubjectTenants, fmt.Sprintf(`{"sort":"name","limit":2,"after":%q}`, after), &out); e != nil {
			env.T.Fatalf("tenants: %s %s", e.Code, e.Message)
		}
		if all = append(all, out.Tenants...); out.After == nil {
			break
		}
		after = out.After.String()
	}
	got := map[string][2]int64{}
	for _, x := range all {
		got[x.Tenant] = [2]int64{x.Sessions, x.Rejected}
		if len(x.Models) != 1 || x.Models[0].Input != x.Input || x.Input == 0 || x.Levels[events.LevelOK]+x.Levels[events.LevelInfo] != 10 || x.OutcomeBound == 0 {
			env.T.Errorf("%+v", x)
		}
	}
	if diff := cmp.Diff(map[string][2]int64{"t0": {10, 1}, "t1": {10, 0}, "t2": {10, 0}}, got); diff != "" {
		env.T.Errorf("sessions and refusals (-want +got):\n%s", diff)
	}
}
