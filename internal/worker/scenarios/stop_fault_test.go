//go:build faults

package scenarios_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"compactd/internal/broker/embedded"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
)

// On SIGTERM the process logs that it is stopping, and ends within its drain timeout of 10
// seconds, whatever it waits for (P16b).
func TestFaultStop(t *testing.T) {
	t.Parallel()
	bin := buildWorker(t)
	const limit = 11 * time.Second // and a second for the process itself
	counts, late, unlogged := []any{}, 0, 0
	for _, c := range []struct {
		name string
		stop func(t *testing.T, bin string) (took time.Duration, log string)
	}{
		{"idle", stopIdle}, {"broker_gone", stopBrokerGone}, {"broker_frozen", stopBrokerFrozen}, {"model_hangs", stopModelHangs}, {"disk_full", stopDiskFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			took, log := c.stop(t, bin)
			counts = append(counts, c.name+"_s", fmt.Sprintf("%.1f", took.Seconds()))
			if took > limit {
				late++
				t.Errorf("the stop took %s\n%s", took, log)
			}
			if !strings.Contains(log, `"message":"stopping"`) {
				unlogged++
				t.Errorf("the log has no message stopping\n%s", log)
			}
			if _, after, _ := strings.Cut(log, `"message":"stopping"`); strings.Contains(after, "renew lease") {
				t.Errorf("leases were renewed\n%s", after)
			}
		})
	}
	figures.Print(t, "P16b", append(counts, "late", late, "unlogged", unlogged)...)
}

// end sends SIGTERM, and returns how long the process took to end, with or without an error.
func (p *process) end() (took time.Duration, log string) {
	p.t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case err := <-p.exited:
		p.exited <- err // for kill
	case <-time.After(workertest.WaitLimit):
		p.t.Errorf("the worker does not end\n%s", p.log.text())
	}
	return time.Since(began), p.log.text()
}

func newProcess(t *testing.T, bin string, args ...string) *process {
	p := &process{t: t, bin: bin, data: t.TempDir(), args: append([]string{"--http", "off"}, args...)}
	t.Cleanup(p.kill)
	return p
}

func stopIdle(t *testing.T, bin string) (time.Duration, string) {
	p := newProcess(t, bin, "--listen", workertest.FreePort(t))
	p.start()
	p.awaitReady()
	return p.end()
}

func stopBrokerGone(t *testing.T, bin string) (time.Duration, string) {
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "-1"})
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, bin, "--nats", s.ClientURL())
	p.start()
	p.awaitReady()
	sub := newSubscriber(t, s.ClientURL())
	newAgentFleet(t, s.ClientURL(), 24, 2000)
	sub.await(100)
	s.Stop()
	return p.end()
}

// stopBrokerFrozen stops a worker whose broker does not answer, and does not close connections.
func stopBrokerFrozen(t *testing.T, bin string) (time.Duration, string) {
	listen := workertest.FreePort(t)
	broker := newProcess(t, bin, "--listen", listen)
	broker.start()
	broker.awaitReady()
	p := newProcess(t, bin, "--nats", "nats://"+listen)
	p.start()
	p.awaitReady()
	sub := newSubscriber(t, "nats://"+listen)
	newAgentFleet(t, "nats://"+listen, 24, 2000)
	sub.await(100)
	broker.signal(syscall.SIGSTOP)
	workertest.Pause(t, time.Second)
	return p.end()
}

func stopModelHangs(t *testing.T, bin string) (time.Duration, string) {
	s := summarizetest.Start(t, nil)
	s.Script(summarizetest.Hang)
	listen := workertest.FreePort(t)
	p := newProcess(t, bin, "--listen", listen, "--summarizer", "openai/m")
	p.env = []string{"COMPACTD_OPENAI_KEY=none", "COMPACTD_OPENAI_BASE_URL=" + s.URL() + "v1"}
	p.start()
	p.awaitReady()
	_, js := workertest.Dial(t, "nats://"+listen)
	for n := 1; n <= outageTurns; n++ {
		if _, err := js.Publish(t.Context(), "session.turn.default.s", workertest.Turn(n)); err != nil {
			t.Fatal(err)
		}
	}
	workertest.Until(t, "a model is called", func() bool { return s.Calls() > 0 })
	return p.end()
}

func stopDiskFull(t *testing.T, bin string) (time.Duration, string) {
	d := newSmallDisk(t, "8m")
	p := &onSmallDisk{t: t, disk: d, bin: bin, listen: workertest.FreePort(t), http: workertest.FreePort(t), log: filepath.Join(t.TempDir(), "log")}
	p.start()
	p.await(true)
	_, js := workertest.Dial(t, "nats://"+p.listen)
	for n := 0; ; n++ {
		if _, err := js.Publish(t.Context(), subjectOfAgent(n%6), agentTurn(30+n%6, 1+n/6)); err != nil {
			break
		}
	}
	p.await(false)
	began := time.Now()
	p.stop()
	took := time.Since(began)
	log, err := os.ReadFile(p.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return took, string(log)
}
