//go:build faults

package worker_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
)

// P14: a worker with its server in one process takes a million turns of ten thousand sessions,
// some with outputs of 900 KB, under GOMEMLIMIT=256MiB. SOAK_TURNS sets a smaller number.
func TestSoakMemory(t *testing.T) {
	turns := 1_000_000
	if s := os.Getenv("SOAK_TURNS"); s != "" {
		var err error
		if turns, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	sessions := turns / 100
	p := &process{t: t, bin: buildWorker(t), data: t.TempDir(), listen: freePort(t), env: []string{"GOMEMLIMIT=256MiB"}}
	p.args = []string{"--listen", p.listen, "--partitions", "8"}
	p.start()
	t.Cleanup(p.kill)
	p.awaitReady()
	idle := p.memory("VmRSS")
	_, js := dial(t, p.url())
	for n := 1; n <= 100; n++ {
		acks := make([]jetstream.PubAckFuture, 0, sessions)
		for s := range sessions {
			acks = append(acks, publishLarge(t, js, s, n))
		}
		for _, a := range acks {
			select {
			case <-a.Ok():
			case err := <-a.Err():
				t.Fatal(err)
			}
		}
		awaitDecided(t, p.url()) // an agent waits for its model between two turns
	}
	state, err := topology.State(t.Context(), js, topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	figures.Print(t, "P14", "turns", turns, "sessions", sessions, "log_mb", state.Bytes>>20, "lost", max(0, turns-int(state.Messages)),
		"idle_mb", idle, "rss_mb", p.memory("VmHWM"), "anonymous_mb", p.memory("RssAnon"))
	p.terminate()
}

// publishLarge publishes a turn of 1.5 KB, or one in 5,000 with an output of 900 KB.
func publishLarge(t *testing.T, js jetstream.JetStream, session, n int) jetstream.PubAckFuture {
	t.Helper()
	size := 1200
	if (session*100+n)%5000 == 0 {
		size = 900_000
	}
	text := strings.Repeat(fmt.Sprintf("line %d of %d\\n", n, session), size/16)
	data := fmt.Appendf(nil, `{"v":1,"id":"%d-%d","turn":%d,"model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"user","content":"go on"},`+
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"shell","arguments":"{}"}}]},`+
		`{"role":"tool","tool_call_id":"c%d","content":"%s"}]}`, session, n, n, n, n, text)
	subject := events.Published(events.KindTurn, events.Address{Tenant: "default", Session: fmt.Sprintf("s%d", session)})
	for {
		a, err := js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: data})
		if err == nil {
			return a
		}
		if js.PublishAsyncPending() == 0 {
			t.Fatal(err)
		}
		<-js.PublishAsyncComplete() // too many are under way
	}
}

// memory returns a line of the process's status in /proc, in MB.
func (p *process) memory(line string) int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(status), line+":")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		p.t.Fatalf("no %s in\n%s", line, status)
	}
	kb, err := strconv.Atoi(fields[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return kb >> 10
}
