//go:build faults

package scenarios_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/failpoint"
)

// E8: a worker with its server crashes at each step of an erasure. The next worker completes
// it. Once that is published, no file contains a byte of the session, and the other sessions
// are as they were.
func TestFaultForget(t *testing.T) {
	t.Parallel()
	bin := buildWorker(t, "-tags", "faults")
	for _, at := range failpoint.EraseNames {
		t.Run(at, func(t *testing.T) {
			data := t.TempDir()
			p := &process{t: t, bin: bin, data: data, listen: workertest.FreePort(t), env: []string{"COMPACTD_FAILPOINT=" + at}}
			p.start()
			t.Cleanup(p.kill)
			p.awaitReady()
			_, js := workertest.Dial(t, p.url())
			send := func(k events.Kind, session string, body []byte) {
				t.Helper()
				if _, err := js.Publish(t.Context(), "session."+string(k)+".default."+session, body); err != nil {
					t.Fatal(err)
				}
			}
			for n := 1; n <= 15; n++ {
				for s := range 6 {
					send(events.KindTurn, fmt.Sprintf("s%d", s), agentTurn(s, n))
				}
				send(events.KindTurn, victim, secretTurn(n))
			}
			awaitDecided(t, p.url())
			if len(filesContaining(t, secret, data)) == 0 {
				t.Fatal("the secret is in no file before the erasure: the test shows nothing")
			}
			send(events.KindForget, victim, []byte(`{}`))
			p.awaitKilled(at)
			p.env = nil
			p.start()
			p.awaitReady()
			if e := confirmation(t, p.url()); !e.Resumed {
				t.Errorf("confirmed by %+v", e)
			}
			if found := filesContaining(t, secret, data); len(found) > 0 {
				t.Errorf("while it runs the secret is in %q", found)
			}
			awaitDecided(t, p.url())
			p.terminate()
			if found := append(filesContaining(t, secret, data), filesContaining(t, victim, filepath.Join(data, "ledgers"))...); len(found) > 0 {
				t.Errorf("the secret or the name is in %q", found)
			}
			env := workertest.Open(t, embedded.Config{Dir: filepath.Join(data, "nats")}, topology.Config{})
			defer env.Stop()
			env.Config = workertest.NewConfig(t, policy.Default())
			if d := cmp.Diff(workertest.BySession(env.Redecided()), env.OutcomesBySession()); d != "" {
				t.Errorf("stored outcomes differ from those of the log (-log +stored):\n%s", d)
			}
		})
	}
}

// confirmation waits for the first session.erased.
func confirmation(t *testing.T, url string) (e events.Erased) {
	t.Helper()
	nc, js := workertest.Dial(t, url)
	defer nc.Close()
	c, err := js.OrderedConsumer(t.Context(), topology.OutcomesStream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{"out.*.erased.>"}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Next(jetstream.FetchMaxWait(workertest.WaitLimit))
	if err == nil {
		err = codec.Unmarshal(m.Data(), &e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}
