//go:build faults

package scenarios_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// P14: a worker takes a million turns of ten thousand sessions, some with outputs of 900 KB,
// and compacts every session, under a limit of 256 MiB. Its memory is bounded, and given
// back after the load. SOAK_TURNS sets a smaller number of turns.
func TestSoakMemory(t *testing.T) {
	turns := 1_000_000
	if s := os.Getenv("SOAK_TURNS"); s != "" {
		var err error
		if turns, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	bin := buildWorker(t)
	t.Run("alone", func(t *testing.T) {
		s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "-1"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		p := &process{t: t, bin: bin, data: t.TempDir(), args: []string{"--nats", s.ClientURL()}}
		p.boundedMemory(s.ClientURL(), turns, 512)
	})
	t.Run("embedded", func(t *testing.T) {
		p := &process{t: t, bin: bin, data: t.TempDir(), listen: workertest.FreePort(t)}
		p.args = []string{"--listen", p.listen}
		p.boundedMemory(p.url(), turns, 768)
	})
}

// boundedMemory runs the worker under load. It must hold at most so many MB, and a minute
// later half more than when it was ready.
func (p *process) boundedMemory(url string, turns, most int) {
	t, sessions := p.t, turns/100
	t.Helper()
	p.args = append(p.args, "--memory", "256MiB", "--partitions", "8", "--set", "window_tokens=24000")
	p.start()
	t.Cleanup(p.kill)
	p.awaitReady()
	idle, idleAnon := p.memory("VmRSS"), p.memory("RssAnon")
	_, js := workertest.Dial(t, url)
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
		awaitDecided(t, url) // an agent waits for its model between two turns
	}
	awaitJobs(t, url)
	log, err := js.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := log.Info(t.Context(), jetstream.WithSubjectFilter("log.*.turn.>"))
	if err != nil {
		t.Fatal(err)
	}
	lost := turns
	for _, n := range info.State.Subjects {
		lost -= int(n)
	}
	peak, after := p.memory("VmHWM"), p.memory("VmRSS")
	for end := time.Now().Add(time.Minute); 2*after > 3*idle && time.Now().Before(end); after = p.memory("VmRSS") {
		time.Sleep(time.Second)
	}
	figures.Print(t, "P14", "turns", turns, "sessions", sessions, "log_mb", info.State.Bytes>>20, "lost", lost,
		"idle_mb", idle, "rss_mb", peak, "after_mb", after, "after_percent", 100*after/idle, "idle_anon_mb", idleAnon, "after_anon_mb", p.memory("RssAnon"))
	if peak > most || 2*after > 3*idle {
		t.Errorf("%d MB at most, and %d after the load; want %d, and half more than the %d before", peak, after, most, idle)
	}
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
		if !errors.Is(err, jetstream.ErrTooManyStalledMsgs) {
			t.Fatal(err)
		}
		<-js.PublishAsyncComplete()
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
