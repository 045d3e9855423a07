package worker_test

import (
	"testing"
	"time"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker/observe"
)

// Jobs are read again after their consumers were deleted.
func TestDeletedConsumers(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, compaction.DefaultPolicy())
	env.summarizer = extract.New()
	lanes := make(chan struct{}, 16)
	done := make(chan observe.SummaryDone, 1024)
	stop := env.run("a", observe.Listener{
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
		deadline := time.After(waitLimit)
		for {
			n++
			env.publish(events.KindTurn, "s1", turn(n))
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
		if err := env.js.DeleteConsumer(t.Context(), topology.OutcomesStream, "summarizer-"+string(lane)); err != nil {
			t.Fatal(err)
		}
	}
	for range events.Lanes {
		select {
		case <-lanes:
		case <-time.After(waitLimit):
			t.Fatal("a lane does not report that its consumer is gone")
		}
	}
	for len(done) > 0 {
		<-done
	}
	summarized()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
