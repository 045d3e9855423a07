package scenarios_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// B4: a session that has been idle for an hour has a cold cache at the provider: its old results
// are cleared before the next call, once.
func TestIdleSession(t *testing.T) {
	inIdleEnv(t, func(t *testing.T, env *workertest.Env, received chan *nats.Msg) {
		stop := env.Run("a", observe.Listener{})
		env.Publish(events.KindTurn, "s", toolTurn(8))
		time.Sleep(50 * time.Minute)
		if len(received) > 0 {
			t.Errorf("published before the hour: %s", (<-received).Data)
		}
		time.Sleep(3 * time.Hour)
		if len(received) != 1 {
			t.Fatalf("%d compactions in three hours; want one", len(received))
		}
		body, err := events.DecodeOutcome(events.KindCompacted, (<-received).Data)
		if err != nil {
			t.Fatal(err)
		}
		if c := body.(*events.Compacted); c.Reason != events.ReasonIdle || len(c.Edits) != 3 {
			t.Errorf("compacted for %s with edits %v; want idle, and all but 5 of 8 results cleared", c.Reason, c.Edits)
		}
		stop()
	})
}

// inIdleEnv runs a test with a clock of its own, on a server of one partition whose policy
// clears the results of idle sessions. The channel receives their compactions.
func inIdleEnv(t *testing.T, run func(t *testing.T, env *workertest.Env, received chan *nats.Msg)) {
	dir := t.TempDir()
	workertest.EmptyPools()
	defer workertest.EmptyPools()
	ats.Register() // starts the server's own clock outside of the bubble
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		env := workertest.Open(t, embedded.Config{Dir: dir, Durability: embedded.DurablePower}, topology.Config{Partitions: 1}) // without a sync each second
		defer env.Stop()
		policy, ok := policy.Preset("claude")
		if !ok {
			t.Fatal("no preset claude")
		}
		policy.Summarize.Enabled = false
		env.Config, env.MarkerEvery, env.LeaseTTL = workertest.NewConfig(t, policy), time.Minute, time.Hour // few renewals in hours
		received := make(chan *nats.Msg, 1000)
		if _, err := env.Conn.ChanSubscribe("session.compacted.*.*", received); err != nil {
			t.Fatal(err)
		}
		run(t, env, received)
	})
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

// B4: the same holds for sessions that are not in memory: after a restart on the ledger file,
// after a take-over by a worker with a directory of its own, and where memory holds a single
// ledger. Each session is cleared once.
func TestIdleSessionsOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		name       string
		next       string // the owner that finds them idle
		maxLedgers int
	}{
		{"restart", "a", 0},
		{"take-over", "b", 0},
		{"evicted", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) { testIdleOutOfMemory(t, c.next, c.maxLedgers) })
	}
}

func testIdleOutOfMemory(t *testing.T, next string, maxLedgers int) {
	const sessions = 30
	inIdleEnv(t, func(t *testing.T, env *workertest.Env, received chan *nats.Msg) {
		env.Ledgers, env.MaxLedgers = t.TempDir(), maxLedgers
		stop := env.Run("a", observe.Listener{})
		for i := range sessions {
			env.Publish(events.KindTurn, fmt.Sprintf("s%d", i), toolTurn(8))
		}
		time.Sleep(10 * time.Minute)
		if next != "" {
			stop()
			if next != "a" {
				env.Ledgers = t.TempDir()
			}
			stop = env.Run(next, observe.Listener{})
		}
		time.Sleep(40 * time.Minute)
		if len(received) > 0 {
			t.Errorf("published before the hour: %s", (<-received).Data)
		}
		time.Sleep(3 * time.Hour)
		cleared := map[string]int{}
		for len(received) > 0 {
			m := <-received
			body, err := events.DecodeOutcome(events.KindCompacted, m.Data)
			if err != nil {
				t.Fatal(err)
			}
			if c := body.(*events.Compacted); c.Reason == events.ReasonIdle && len(c.Edits) == 3 {
				cleared[m.Subject]++
			}
		}
		for subject, n := range cleared {
			if n != 1 {
				t.Errorf("%s: cleared %d times", subject, n)
			}
		}
		if len(cleared) != sessions {
			t.Errorf("%d of %d sessions were cleared", len(cleared), sessions)
		}
		stop()
	})
}
