package scenarios_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/plant"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/redecide"
)

// intruder stores messages among the outcomes of partition 0, as anyone can on a server without
// accounts.
type intruder struct {
	env   *workertest.Env
	raw   *plant.Conn
	count int
}

// intrude stores one message of each form.
func (i *intruder) intrude() {
	env := i.env
	env.T.Helper()
	at := events.Address{Tenant: "default", Session: "s1"}
	newest, err := jsapi.GetFromLeader(env.T.Context(), env.Conn, topology.OutcomesStream, jsapi.GetRequest{LastFor: "out.0.>"})
	var copied nats.Header
	if err == nil {
		copied = nats.Header{commit.HeaderMarker: newest.Headers()[commit.HeaderMarker]}
	}
	forged := `{"cursor":1,"owner":"intruder","epoch":99,"commit":"x","log_created":1}`
	for _, m := range []*nats.Msg{
		{Subject: events.Outcome(0, events.KindCompacted, at), Data: []byte(`{"v":1,"generation":77,"compacted":true,"messages":[]}`)},
		{Subject: events.Outcome(0, events.KindCompacted, at), Data: []byte("no JSON"), Header: copied},
		{Subject: events.Outcome(0, events.KindBudget, at), Data: bytes.Repeat([]byte("x"), 1<<20)},
		{Subject: events.Outcome(0, events.KindRejected, at), Data: []byte(`{"v":1,"seq":1,"kind":"turn","code":"bad_json"}`)},
		{Subject: events.Outcome(0, events.KindForgotten, at), Data: []byte(`{"v":1,"seq":1}`)},
		{Subject: events.Outcome(0, events.KindErased, at), Data: []byte(`[]`)},
		{Subject: events.Outcome(0, "other", at), Data: []byte(`{}`)},
		{Subject: events.JobSubject(0, events.LaneNormal, at), Data: []byte(`{"seqs":[1]}`)},
		{Subject: events.JobSubject(0, events.LaneEmergency, at), Data: []byte(`-`)},
		{Subject: events.Marker(0), Header: nats.Header{commit.HeaderMarker: {forged}}},
		{Subject: "out.0.a.b.c.d.e"},
	} {
		if _, err := env.JS.PublishMsg(env.T.Context(), m); err != nil {
			env.T.Fatal(err)
		}
		i.count++
	}
	if _, err := env.JS.Publish(env.T.Context(), events.Config(env.Config.Hash()), []byte(workertest.PlantedText)); err != nil {
		env.T.Fatal(err)
	}
	// The server finds its headers behind a carriage return alone, clients find them without.
	if _, err := i.raw.Publish(events.Marker(0), "NATS/1.0\r\nA: b\n"+jsapi.HeaderFence+": 1\n"+jsapi.HeaderFenceSubject+": out.0.>\n"+
		commit.HeaderMarker+": "+forged+"\r\n\r\n", ""); err != nil {
		env.T.Fatal(err)
	}
	i.count++
	// The answer to a publish goes to the subject that its publisher names.
	if err := env.Conn.PublishRequest(events.InputPattern[:len("session.")]+"turn.default.other", events.Outcome(0, events.KindBudget, at), workertest.Turn(i.count)); err != nil {
		env.T.Fatal(err)
	}
	if err := env.Conn.Flush(); err != nil {
		env.T.Fatal(err)
	}
	i.count++
}

// Hostile actors: what others store under out.<p>.> is skipped, reported and counted, whenever they
// do. No partition is lost for it, none is taken over more often than workers start, and all
// who read outcomes get those of the workers alone.
func TestForeignOutcomes(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), Listen: "-1"}, topology.Config{Partitions: 1})
	env.Ledgers = t.TempDir()
	raw, err := plant.Dial(env.Server.ClientURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	intruder := &intruder{env: env, raw: raw}
	var reported, acquired atomic.Int64
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	listener := observe.Tee(m.Listener(), observe.Listener{
		Foreign:           func(e observe.Foreign) { reported.Add(int64(e.Messages)) },
		PartitionFailed:   func(e observe.PartitionFailed) { t.Errorf("failed: %v", e.Err) },
		PartitionAcquired: func(observe.PartitionAcquired) { acquired.Add(1) },
		PartitionReleased: func(e observe.PartitionReleased) {
			if e.Err != nil {
				t.Errorf("released: %v", e.Err)
			}
		},
	})
	intruder.intrude()
	const starts = 4
	n := 0
	for i := range starts {
		stop := env.Run(fmt.Sprintf("w%d", i), listener)
		for range 6 {
			n++
			env.Publish(events.KindTurn, "s1", workertest.Turn(n))
			intruder.intrude()
			env.AwaitDecided()
		}
		stop()
		intruder.intrude()
		if i%2 == 1 {
			env.Ledgers = t.TempDir() // from the log
		}
	}
	stop := env.Run("last", listener)
	env.AwaitDecided()
	if acquired.Load() != starts+1 {
		t.Errorf("acquired %d times", acquired.Load())
	}
	if marker, err := commit.LastMarker(t.Context(), env.Conn, 0); err != nil || marker.Epoch != starts+1 {
		t.Errorf("epoch %d, %v", marker.Epoch, err)
	}
	if got := reported.Load(); got < int64(intruder.count) { // a new owner without a file reads all of them again
		t.Errorf("reported %d of %d", got, intruder.count)
	}
	if _, body := workertest.Get(t, m, "/metrics", "", ""); !strings.Contains(body, fmt.Sprintf("\ncompactd_foreign_outcomes_total %d\n", reported.Load())) {
		t.Error("compactd_foreign_outcomes_total is not what was reported")
	}
	generation := int64(0)
	for _, e := range env.History("s1", 100).Entries {
		if e.Generation == 77 {
			t.Error("the history lists a compaction that no worker committed")
		}
		generation = max(generation, e.Generation)
	}
	if c := env.Context("s1", 1); generation == 0 || c.Generation != generation {
		t.Errorf("generation %d, the history has %d", c.Generation, generation)
	}
	stop()
	if out := env.Replay(redecide.Span{}); out.Differing != 0 || out.Undecidable != nil || out.Outcomes == 0 {
		t.Errorf("replayed: %+v", out)
	}
	env.WantRedecided()
	figures.Print(t, "hostile", "foreign", intruder.count, "reported", reported.Load(), "take_overs", acquired.Load(), "failed", one(t.Failed()))
}
