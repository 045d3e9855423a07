package scenarios_test

import (
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A session that outgrows its window is compacted again and again, across a restart of the
// worker. The stored outcomes are those that follow from the log alone.
func TestCompacts(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	sub, err := env.Connect().SubscribeSync(events.Published(events.KindCompacted, events.Address{Tenant: "default", Session: "*"}))
	if err != nil {
		t.Fatal(err)
	}
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 20; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	env.AwaitDecided()
	stop()
	for n := 21; n <= 30; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	stop = env.Run("b", observe.Listener{})
	env.AwaitDecided()
	stop()
	stored := env.Stored()
	env.WantRedecided()
	compactions := 0
	for subject, payloads := range stored {
		at, err := events.ParseOutcome(subject)
		if err != nil {
			t.Fatal(err)
		}
		if at.Kind != events.KindCompacted {
			continue
		}
		for _, b := range payloads {
			compactions++
			m, err := sub.NextMsg(workertest.WaitLimit)
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Data) != b {
				t.Error("an agent received another payload than the stored one")
			}
			var c events.Compacted
			if err := codec.Unmarshal(m.Data, &c); err != nil {
				t.Fatal(err)
			}
			if v := validate.Messages(c.Format, c.Messages); len(v) > 0 {
				t.Errorf("generation %d: %v", c.Generation, v)
			}
		}
	}
	if compactions < 2 {
		t.Errorf("%d compactions in 30 turns of 1,000 tokens in a window of 16,000", compactions)
	}
}
