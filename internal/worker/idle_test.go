package worker_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker"
)

// B4: a session that has been silent for an hour has a cold cache: its old results
// are cleared before the next call, and once only.
func TestIdleSession(t *testing.T) {
	dir := t.TempDir()
	emptyPools()
	defer emptyPools()
	ats.Register() // a clock of the server's own, which must not be one of the bubble's
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		w := openWorld(t, embedded.Config{Dir: dir, Durability: embedded.DurablePower}, topology.Config{Partitions: 1}) // without a sync each second
		defer w.stop()
		policy, ok := compaction.Preset("claude")
		if !ok {
			t.Fatal("no preset claude")
		}
		policy.Summarize.Enabled = false
		w.config, w.markEvery = newConfig(t, policy), time.Minute
		heard := make(chan *nats.Msg, 100)
		if _, err := w.conn.ChanSubscribe("session.compacted.*.*", heard); err != nil {
			t.Fatal(err)
		}
		stop := w.run("a", worker.Listener{})
		w.publish(events.KindTurn, "s", toolTurn(8))
		time.Sleep(50 * time.Minute)
		if len(heard) > 0 {
			t.Errorf("told before the hour: %s", (<-heard).Data)
		}
		time.Sleep(3 * time.Hour)
		if len(heard) != 1 {
			t.Fatalf("%d compactions in three hours; want one", len(heard))
		}
		body, err := events.DecodeOutcome(events.KindCompacted, (<-heard).Data)
		if err != nil {
			t.Fatal(err)
		}
		if c := body.(*events.Compacted); c.Reason != events.ReasonIdle || len(c.Edits) != 3 {
			t.Errorf("told %s with edits %v; want idle, and all but 5 of 8 results cleared", c.Reason, c.Edits)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// emptyPools empties the pools of nats.go: a timer of one bubble is fatal outside of
// it. The first collection moves what is in a pool, the second drops it.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

// toolTurn is a turn with so many commands and their outputs.
func toolTurn(n int) []byte {
	messages := []string{`{"role":"user","content":"look around"}`}
	for i := range n {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"ls"}}]}`, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}`, i, strings.Repeat("a file\n", 100)))
	}
	messages = append(messages, `{"role":"assistant","content":"nothing there"}`)
	return fmt.Appendf(nil, `{"turn":1,"model":{"provider":"anthropic","name":"claude-sonnet-4-20250514"},"messages":[%s]}`, strings.Join(messages, ","))
}
