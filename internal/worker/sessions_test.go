package worker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
)

// sessions lists all sessions of a tenant in pages, and returns how many requests that took.
func (env *testEnv) sessions(tenant string, limit int) (all []events.SessionSummary, requests int) {
	env.t.Helper()
	for after := ""; ; {
		requests++
		var out events.SessionsResponse
		if e := env.request(events.SubjectSessions, fmt.Sprintf(`{"tenant":%q,"limit":%d,"after":%q}`, tenant, limit, after), &out); e != nil {
			env.t.Fatalf("sessions after %q: %s %s", after, e.Code, e.Message)
		}
		if len(out.Sessions) > limit || out.Tenant != tenant {
			env.t.Errorf("%d sessions of %s, at most %d were wanted", len(out.Sessions), out.Tenant, limit)
		}
		all = append(all, out.Sessions...)
		if out.After == nil {
			return all, requests
		}
		after = out.After.String()
	}
}

func names(all []events.SessionSummary) (out []string) {
	for _, s := range all {
		out = append(out, s.Session)
	}
	slices.Sort(out)
	return out
}

// Every session of a tenant that has not ended is listed once, whatever the size of a page,
// whichever worker serves its partition, in memory or not.
func TestSessions(t *testing.T) {
	t.Parallel()
	env, owners := newEnv(t, t.TempDir()), newOwnership(t)
	env.ledgers, env.maxLedgers, env.checkpointEvery = t.TempDir(), 4, 20*time.Millisecond
	env.leaseTTL = time.Hour // a slow worker loses no partition
	first := env.start("a", owners.listener("a"))
	<-first.worker.Ready()
	var want []string
	for i := range 30 {
		session := fmt.Sprintf("s%02d", i)
		env.publish(events.KindTurn, session, turn(1))
		if i%5 == 0 {
			env.publish(events.KindEnd, session, []byte(`{}`))
			continue
		}
		want = append(want, session)
	}
	env.publish(events.KindTurn, "parked", turn(3))
	want = append([]string{"parked"}, want...)
	env.awaitDecided()
	env.ledgers = t.TempDir()
	second := env.start("b", owners.listener("b"))
	<-second.worker.Ready()
	owners.await(map[string]int{"a": 2, "b": 2})
	for _, limit := range []int{1, 7, 500} {
		all, _ := env.sessions("default", limit)
		if diff := cmp.Diff(want, names(all)); diff != "" {
			t.Errorf("in pages of %d (-want +listed):\n%s", limit, diff)
		}
		for _, s := range all {
			st := env.stats(s.Session)
			like := events.SessionSummary{
				Session: s.Session, Turns: st.Turns, EstimatedInput: st.Budget.EstimatedInput, AvailableInput: st.Budget.AvailableInput,
				Level: st.Budget.Level, Generation: st.Generation, LastTurn: s.LastTurn, Cost: st.Cost,
			}
			if diff := cmp.Diff(like, s); diff != "" {
				t.Errorf("(-stats +listed):\n%s", diff)
			}
			if old := time.Since(time.UnixMilli(s.LastTurn)); old < -time.Second || old > waitLimit {
				t.Errorf("%s: last turn at %d", s.Session, s.LastTurn)
			}
		}
	}
	if all, requests := env.sessions("others", 500); len(all) != 0 || requests > 5 {
		t.Errorf("another tenant has %v, after %d requests", all, requests)
	}
	for in, code := range map[string]events.Code{
		`{"tenant":"a.b"}`:  events.CodeBadID,
		`{"limit":0}`:       events.CodeOutOfRange,
		`{"limit":501}`:     events.CodeOutOfRange,
		`{"after":"x"}`:     events.CodeOutOfRange,
		`{"after":"0.a.b"}`: events.CodeOutOfRange,
		`{"after":"4."}`:    events.CodeOutOfRange,
		`{"after":7}`:       events.CodeBadType,
	} {
		if e := env.request(events.SubjectSessions, in, nil); e == nil || e.Code != code || e.Hint == "" {
			t.Errorf("%s: got %+v, want %s", in, e, code)
		}
	}
	for _, stop := range []func() error{first.stop, second.stop} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}
