package scenarios_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/audit"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A request whose reply subject belongs to a stream gets no answer.
func TestForeignReply(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	if err := topology.EnsureAudit(t.Context(), env.JS); err != nil {
		t.Fatal(err)
	}
	stop := env.Run("a", observe.Listener{})
	for _, reply := range []string{"session.turn.default.s1", "out.0.mark", "out.1.compacted.default.s1", "audit.context.default", "$JS.API.STREAM.DELETE.SESSIONS"} {
		for _, subject := range []string{events.SubjectCheck, events.SubjectContext, events.OfTenant(events.SubjectContext, "default"), events.SubjectRecall, events.SubjectStats, events.SubjectHealth} {
			if err := env.Conn.PublishRequest(subject, reply, []byte(`{"session":"s1"}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	env.Context("s1", 1) // answered after the others of its endpoint
	env.Publish(events.KindTurn, "s1", workertest.Turn(1))
	env.AwaitDecided()
	if state, err := topology.State(t.Context(), env.JS, topology.LogStream); err != nil || state.Last != 1 {
		t.Errorf("the log ends at %d, %v", state.Last, err)
	}
	if diff := cmp.Diff([]string{"context nats default.s1"}, env.Audit(audit.Selection{})); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	stop()
	env.WantRedecided()
}

// Requests between turns change nothing, and every answer is a history that an agent could have.
func TestRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	stop := env.Run("a", observe.Listener{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; n <= 60; n++ {
			env.Publish(events.KindTurn, "s1", workertest.Turn(n))
		}
	}()
	var seen []events.ContextResponse
	for more := true; more; {
		select {
		case <-done:
			more = false
		default:
		}
		seen = append(seen, env.Context("s1", 1))
		var s events.StatsResponse
		if e := env.Request(events.SubjectStats, `{"session":"s1"}`, &s); e != nil {
			t.Fatal(e)
		}
	}
	env.AwaitDecided()
	published := map[int64]int64{0: 0} // by generation, through which turn
	for _, c := range env.Compactions("s1") {
		published[c.Generation] = c.Through.Turn
	}
	last := events.ContextResponse{}
	for _, c := range seen {
		through, ok := published[c.Generation]
		if !ok || c.Through.Turn < through {
			t.Errorf("generation %d through turn %d was never published", c.Generation, c.Through.Turn)
		}
		if c.Generation < last.Generation || c.Through.Turn < last.Through.Turn {
			t.Errorf("after generation %d, turn %d came %d, %d", last.Generation, last.Through.Turn, c.Generation, c.Through.Turn)
		}
		if v := validate.Messages(events.OpenAI, c.Messages); len(v) > 0 {
			t.Errorf("generation %d through turn %d: %v", c.Generation, c.Through.Turn, v)
		}
		last = c
	}
	stop()
	env.WantRedecided()
}
