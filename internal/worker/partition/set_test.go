package partition

import (
	"testing"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// The start of a worker and each change of its config store texts again that would expire long before the events
// decided under them.
func TestConfigTextsAreRenewed(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.New(t)}
	env.Streams.MaxAge = 2 * renewalsPerAge // each text is too old at once
	set, configs := env.set("a", ""), simulatedConfigs()
	join := func() error {
		stop, err := set.Join(t.Context())
		if err == nil {
			stop()
		}
		return err
	}
	use := func(c *compaction.Config) func() error {
		return func() error { return set.UseConfig(t.Context(), c) }
	}
	for i, step := range []struct {
		do     func() error
		stored uint64 // texts
	}{
		{join, 1},
		{join, 1},
		{use(configs[2]), 2}, // the former and the new one
		{use(configs[3]), 2},
		{use(configs[2]), 2},
		{use(configs[2]), 0}, // no change
	} {
		before := env.State(topology.OutcomesStream).Last
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if stored := env.State(topology.OutcomesStream).Last - before; stored != step.stored {
			t.Errorf("step %d stored %d texts, want %d", i, stored, step.stored)
		}
	}
}

// Lists of sessions show the levels of the config in force, also where no event came since it changed.
func TestOverviewsFollowConfig(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})}
	set, _, _ := env.serve("a", 0, "")
	env.turns(set, 0, "s", env.turn("s", 1))
	trigger := func() (tokens int64) {
		t.Helper()
		if err := set.At(0).Overviews(func(_ events.Address, o *compaction.Overview) error {
			tokens = o.Budget.TriggerTokens
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return tokens
	}
	before := trigger()
	if err := set.UseConfig(t.Context(), simulatedConfigs()[3]); err != nil { // of a lower threshold
		t.Fatal(err)
	}
	if after := trigger(); after >= before || after == 0 {
		t.Errorf("the trigger is at %d tokens, and was at %d under the former config", after, before)
	}
}
