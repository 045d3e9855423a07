package partition

import (
	"testing"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
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
