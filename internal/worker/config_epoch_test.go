package worker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

// A worker with another config continues from a checkpoint as it does from the log alone:
// events before the change are replayed under the config that they were decided under (P4, P10).
func TestAnotherConfigFromTheLog(t *testing.T) {
	t.Parallel()
	next := compaction.DefaultPolicy()
	next.Profile, next.Summarize.Enabled = "seed", false
	var outcomes [2]map[string][]string
	for i, dir := range []string{t.TempDir(), ""} {
		env := newEnv(t, t.TempDir())
		env.ledgers = dir
		stop := env.run("a", observe.Listener{})
		for n := 1; n <= 6; n++ {
			env.publish(events.KindTurn, "s", usageTurn(n))
		}
		env.awaitDecided()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		env.config = newConfig(t, next)
		stop = env.run("b", observe.Listener{Retrying: noRetry(t)})
		for n := 7; n <= 20; n++ {
			env.publish(events.KindTurn, "s", usageTurn(n))
		}
		env.awaitDecided()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		outcomes[i] = env.stored()
	}
	if diff := cmp.Diff(outcomes[0], outcomes[1]); diff != "" {
		t.Errorf("outcomes from a checkpoint and from the log differ (-checkpoint +log):\n%s", diff)
	}
}

// A worker starts although the text of an older config is gone: it uses the present config
// instead, and reports it.
func TestConfigIsGone(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	stop := env.run("a", observe.Listener{})
	env.publish(events.KindTurn, "s", usageTurn(1))
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	out, err := env.js.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	gone := env.config.Hash()
	last, err := out.GetLastMsgForSubject(t.Context(), events.Config(gone))
	if err != nil {
		t.Fatal(err)
	}
	if err := out.DeleteMsg(t.Context(), last.Sequence); err != nil {
		t.Fatal(err)
	}
	p := withoutSummaries()
	p.Profile = "seed"
	env.config = newConfig(t, p)
	reported := make(chan error, 8)
	if err := env.run("b", observe.Listener{Retrying: func(e observe.Retrying) { reported <- e.Err }})(); err != nil {
		t.Fatal(err)
	}
	close(reported)
	var all []string
	for err := range reported {
		all = append(all, err.Error())
	}
	if len(all) != 1 || !strings.Contains(all[0], gone) {
		t.Errorf("the worker reported %q, want only that config %s is gone", all, gone)
	}
}

// usageTurn is a turn of about 500 tokens. The first six carry the usage of a provider that
// counted more than any estimate.
func usageTurn(n int) []byte {
	text, usage := strings.Repeat(fmt.Sprintf("word %d ", n), 150), ""
	if n <= 6 {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d}`, 900*n)
	}
	return fmt.Appendf(nil, `{"v":1,"id":"t%d","turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":16000,"max_output_tokens":1000},`+
		`"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]%s}`, n, n, text, text, usage)
}
