package jobs_test

import (
	"testing"
	"time"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// Jobs are read again after their consumers were deleted.
func TestDeletedConsumers(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, policy.Default())
	env.Summarizer = extract.New()
	lanes := make(chan struct{}, 16)
	done := make(chan observe.SummaryDone, 1024)
	env.Run("a", observe.Listener{
		Retrying: func(i observe.Retrying) {
			if i.Step == "read jobs" {
				lanes <- struct{}{}
			}
		},
		SummaryDone: func(d observe.SummaryDone) { done <- d },
	})
	n := 0
	summarized := func() {
		t.Helper()
		deadline := time.After(workertest.WaitLimit)
		for {
			n++
			env.Publish(events.KindTurn, "s1", workertest.Turn(n))
			select {
			case d := <-done:
				if d.Failure != "" {
					t.Fatalf("summary failed: %s", d.Failure)
				}
				return
			case <-deadline:
				t.Fatal("no summary is made")
			case <-time.After(5 * time.Millisecond): // the time of a model call
			}
		}
	}
	summarized()
	for _, lane := range events.Lanes {
		if err := env.JS.DeleteConsumer(t.Context(), topology.OutcomesStream, "summarizer-"+string(lane)); err != nil {
			t.Fatal(err)
		}
	}
	for range events.Lanes {
		select {
		case <-lanes:
		case <-time.After(workertest.WaitLimit):
			t.Fatal("a lane does not report that its consumer is gone")
		}
	}
	for len(done) > 0 {
		<-done
	}
	summarized()
}
