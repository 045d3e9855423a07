package spending_test

import (
	"testing"
	"time"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/spending"
)

// A job that waits until the last summary of its tenant is added goes on when that summary is erased unread.
func TestErasedSummary(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	p := policy.Default()
	p.Limits.MonthCents = 1
	config, err := env.Config.WithTenants(map[string]policy.Policy{"default": p})
	if err != nil {
		t.Fatal(err)
	}
	subject, err := events.Input(events.KindSummary, events.Address{Tenant: "default", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := env.JS.Publish(t.Context(), subject, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	looks, err := env.Conn.SubscribeSync(jsapi.SubjectGet + topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	s := spending.New(spending.Config{JS: env.JS, Config: func() *compaction.Config { return config }}) // reads nothing yet
	allowed := make(chan error, 1)
	go func() { allowed <- s.Allow(t.Context(), "default", []string{"anthropic/claude-haiku-4-5"}) }()
	if _, err := looks.NextMsg(workertest.WaitLimit); err != nil {
		t.Fatal(err)
	}
	log, err := env.JS.Stream(t.Context(), topology.LogStream)
	if err == nil {
		err = log.DeleteMsg(t.Context(), ack.Sequence)
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-allowed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(workertest.WaitLimit):
		t.Error("the job waits for a summary that is gone")
	}
}
