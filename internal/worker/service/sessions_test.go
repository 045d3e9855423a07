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
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.Ledgers, env.MaxLedgers, env.CheckpointEvery = t.TempDir(), 4, 20*time.Millisecond
	env.LeaseTTL = time.Hour // a slow worker loses no partition
	env.Run("a", owners.Listener("a"))
	var want []string
	for i := range 30 {
		session := fmt.Sprintf("s%02d", i)
		env.Publish(events.KindTurn, session, workertest.Turn(1))
		if i%5 == 0 {
			env.Publish(events.KindEnd, session, []byte(`{}`))
			continue
		}
		want = append(want, session)
	}
	env.Publish(events.KindTurn, "parked", workertest.Turn(3))
	want = append([]string{"parked"}, want...)
	env.AwaitDecided()
	env.Ledgers = t.TempDir()
	env.Run("b", owners.Listener("b"))
	owners.Await(map[string]int{"a": 2, "b": 2})
	for _, limit := range []int{1, 7, 500} {
		all, last := env.Listed(`"tenant":"default"`, limit)
		if diff := cmp.Diff(want, names(all)); diff != "" || last.Tenant != "default" {
			t.Errorf("in pages of %d (-want +listed):\n%s", limit, diff)
		}
		for _, s := range all {
			st := env.Stats(s.Session)
			like := events.SessionSummary{
				Session: s.Session, Turns: st.Turns, EstimatedInput: st.Budget.EstimatedInput, AvailableInput: st.Budget.AvailableInput,
				Level: st.Budget.Level, Generation: st.Generation, LastTurn: s.LastTurn, Cost: st.Cost,
			}
			if diff := cmp.Diff(like, s); diff != "" {
				t.Errorf("(-stats +listed):\n%s", diff)
			}
			if old := time.Since(time.UnixMilli(s.LastTurn)); old < -time.Second || old > workertest.WaitLimit {
				t.Errorf("%s: last turn at %d", s.Session, s.LastTurn)
			}
		}
	}
	if all, _ := env.Listed(`"tenant":"others"`, 500); len(all) != 0 {
		t.Errorf("another tenant has %v", all)
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
		if e := env.Request(events.SubjectSessions, in, nil); e == nil || e.Code != code || e.Hint == "" {
			t.Errorf("%s: got %+v, want %s", in, e, code)
		}
	}
}
