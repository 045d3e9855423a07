package partition

import (
	"testing"
	"time"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
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

// Lists of sessions and the watch for idle ones follow the config in force, also where no event came since it changed.
func TestConfigWithoutEvents(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})}
	set, _, _ := env.serve("a", 0, "")
	env.turns(set, 0, "s", env.turn("s", 1))
	look := func() (trigger int64, idle int) {
		t.Helper()
		if err := set.At(0).Overviews(func(_ events.Address, o *compaction.Overview) error {
			trigger = o.Budget.TriggerTokens
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return trigger, len(set.At(0).ledgers.idle(time.Now().Add(time.Hour).UnixMilli()))
	}
	former, idle := look()
	if former == 0 || idle > 0 {
		t.Fatalf("under the first config the trigger is at %d tokens, %d sessions are idle", former, idle)
	}
	p, err := policy.Default().Set(codec.Raw(`{"threshold":0.4,"target":0.2,"info":0.3,"prune":{"micro":{"enabled":true,"idle_minutes":30}}}`))
	if err != nil {
		t.Fatal(err)
	}
	next, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	if err := set.UseConfig(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if trigger, idle := look(); trigger >= former || idle != 1 {
		t.Errorf("the trigger is at %d tokens and was at %d; %d sessions are idle, want 1", trigger, former, idle)
	}
}
