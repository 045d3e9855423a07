package scenarios_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A worker with another config continues from a checkpoint as it does from the log alone:
// events before the change are replayed under the config that they were decided under (P4, P10).
func TestAnotherConfigFromTheLog(t *testing.T) {
	t.Parallel()
	next := policy.Default()
	next.Profile, next.Summarize.Enabled = "seed", false
	var outcomes [2]map[string][]string
	for i, dir := range []string{t.TempDir(), ""} {
		env := workertest.New(t, t.TempDir())
		env.Ledgers = dir
		stop := env.Run("a", observe.Listener{})
		for n := 1; n <= 6; n++ {
			env.Publish(events.KindTurn, "s", workertest.UsageTurn(n))
		}
		env.AwaitDecided()
		stop()
		env.Config = workertest.NewConfig(t, next)
		stop = env.Run("b", observe.Listener{Retrying: workertest.NoRetry(t)})
		for n := 7; n <= 20; n++ {
			env.Publish(events.KindTurn, "s", workertest.UsageTurn(n))
		}
		env.AwaitDecided()
		stop()
		outcomes[i] = env.Stored()
	}
	if diff := cmp.Diff(outcomes[0], outcomes[1]); diff != "" {
		t.Errorf("outcomes from a checkpoint and from the log differ (-checkpoint +log):\n%s", diff)
	}
}

// A worker starts although the text of an older config is gone: it uses the present config
// instead, and reports it.
func TestConfigIsGone(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	stop := env.Run("a", observe.Listener{})
	env.Publish(events.KindTurn, "s", workertest.UsageTurn(1))
	env.AwaitDecided()
	stop()
	out, err := env.JS.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	gone := env.Config.Hash()
	last, err := out.GetLastMsgForSubject(t.Context(), events.Config(gone))
	if err != nil {
		t.Fatal(err)
	}
	if err := out.DeleteMsg(t.Context(), last.Sequence); err != nil {
		t.Fatal(err)
	}
	p := workertest.WithoutSummaries()
	p.Profile = "seed"
	env.Config = workertest.NewConfig(t, p)
	reported := make(chan error, 8)
	env.Run("b", observe.Listener{Retrying: func(e observe.Retrying) { reported <- e.Err }})()
	close(reported)
	var all []string
	for err := range reported {
		all = append(all, err.Error())
	}
	if len(all) != 1 || !strings.Contains(all[0], gone) {
		t.Errorf("the worker reported %q, want only that config %s is gone", all, gone)
	}
}
