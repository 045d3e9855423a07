package worker_test

import (
	"testing"
	"time"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
)

// Summaries go on when somebody deletes the consumers that jobs are read by.
func TestDeletedConsumers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	w.config = newConfig(t, compaction.DefaultPolicy())
	w.summarizer = extract.New()
	lanes := make(chan struct{}, 16)
	done := make(chan worker.SummaryDone, 1024)
	stop := w.run("a", worker.Listener{
		Retrying: func(i worker.Retrying) {
			if i.Step == "read jobs" {
				lanes <- struct{}{}
			}
		},
		SummaryDone: func(d worker.SummaryDone) { done <- d },
	})
	n := 0
	summarized := func() {
		t.Helper()
		deadline := time.After(waitLimit)
		for {
			n++
			w.publish(events.KindTurn, "s1", turn(n))
			select {
			case d := <-done:
				if d.Failure != "" {
					t.Fatalf("summary failed: %s", d.Failure)
				}
				return
			case <-deadline:
				t.Fatal("no summary is made")
			case <-time.After(5 * time.Millisecond): // an agent thinks
			}
		}
	}
	summarized()
	for _, lane := range events.Lanes {
		if err := w.js.DeleteConsumer(t.Context(), topology.OutcomesStream, "summarizer-"+string(lane)); err != nil {
			t.Fatal(err)
		}
	}
	for range events.Lanes {
		select {
		case <-lanes:
		case <-time.After(waitLimit):
			t.Fatal("a lane does not notice that its consumer is gone")
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
