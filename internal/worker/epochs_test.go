package worker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker"
)

// A worker with another config goes on from a checkpoint as it does from the log
// alone: what a ledger learned from usages is what the config of then made of them
// (P4, P10). It reports when the text of that config is gone.
func TestAnotherConfigFromTheLog(t *testing.T) {
	t.Parallel()
	next := compaction.DefaultPolicy()
	next.Profile, next.Summarize.Enabled = "seed", false
	var told [2]map[string][]string
	for i, dir := range []string{t.TempDir(), ""} {
		w := newWorld(t, t.TempDir())
		w.ledgers = dir
		stop := w.run("a", worker.Listener{})
		for n := 1; n <= 6; n++ {
			w.publish(events.KindTurn, "s", usageTurn(n))
		}
		w.settle()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		w.config = newConfig(t, next)
		stop = w.run("b", worker.Listener{Retrying: noRetry(t)})
		for n := 7; n <= 20; n++ {
			w.publish(events.KindTurn, "s", usageTurn(n))
		}
		w.settle()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		told[i] = w.stored()
	}
	if diff := cmp.Diff(told[0], told[1]); diff != "" {
		t.Errorf("told from a checkpoint and from the log (-checkpoint +log):\n%s", diff)
	}
}

// A config whose text is gone keeps no worker from starting: the present one takes
// its place, and the worker reports it.
func TestConfigIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	stop := w.run("a", worker.Listener{})
	w.publish(events.KindTurn, "s", usageTurn(1))
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	out, err := w.js.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	gone := w.config.Hash()
	last, err := out.GetLastMsgForSubject(t.Context(), events.Config(gone))
	if err != nil {
		t.Fatal(err)
	}
	if err := out.DeleteMsg(t.Context(), last.Sequence); err != nil {
		t.Fatal(err)
	}
	p := withoutSummaries()
	p.Profile = "seed"
	w.config = newConfig(t, p)
	said := make(chan error, 8)
	if err := w.run("b", worker.Listener{Retrying: func(e worker.Retrying) { said <- e.Err }})(); err != nil {
		t.Fatal(err)
	}
	close(said)
	var all []string
	for err := range said {
		all = append(all, err.Error())
	}
	if len(all) != 1 || !strings.Contains(all[0], gone) {
		t.Errorf("the worker says %q, and nothing else was to be said than that config %s is gone", all, gone)
	}
}

// usageTurn is a turn of about 500 tokens. The first six say what the provider
// counted: more than any estimate.
func usageTurn(n int) []byte {
	text, usage := strings.Repeat(fmt.Sprintf("word %d ", n), 150), ""
	if n <= 6 {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d}`, 900*n)
	}
	return fmt.Appendf(nil, `{"v":1,"id":"t%d","turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":16000,"max_output_tokens":1000},`+
		`"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]%s}`, n, n, text, text, usage)
}
