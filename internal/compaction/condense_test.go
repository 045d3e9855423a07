package compaction_test

import (
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// A job lists a bounded number of turns, however many empty ones a session holds:
// it must fit into a message.
func TestJobTurns(t *testing.T) {
	const empty, limit = 10_500, 10_000
	p := withoutSummaries()
	p.Summarize.Enabled, p.Prune.Enabled, p.Deduplicate.Enabled = true, false, false
	a := newAgent(t, configOf(t, p))
	long := func() object {
		return object{"messages": messages(events.OpenAI, round(1)...)}
	}
	first := long()
	first["model"] = object{"provider": "openai", "context_window": 20_000, "max_output_tokens": 1_000}
	a.publish(first)
	for range 8 {
		a.publish(long())
	}
	for range empty {
		a.publish(object{"messages": []codec.Raw{}})
	}
	for range 60 {
		for _, o := range a.publish(long()) {
			job, ok := o.Body.(*events.Job)
			if !ok {
				continue
			}
			if len(job.Seqs) > limit {
				t.Fatalf("%d turns", len(job.Seqs))
			}
			return
		}
	}
	t.Fatal("no job")
}
