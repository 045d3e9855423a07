package worker_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/kv"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
)

// retained is a world whose streams keep everything for 100 minutes, in fake time.
func retained(t *testing.T, test func(t *testing.T, w *world, heard chan *nats.Msg)) {
	dir, ledgers := t.TempDir(), t.TempDir()
	emptyPools()
	defer emptyPools()
	holdClock(t)
	synctest.Test(t, func(t *testing.T) {
		defer keepClock()()
		w := openWorld(t, embedded.Config{Dir: dir, Durability: embedded.DurablePower}, topology.Config{Partitions: 1, MaxAge: 100 * time.Minute})
		defer w.stop()
		w.markEvery, w.ledgers, w.checkpointEvery, w.leaseTTL = 30*time.Second, ledgers, 30*time.Second, time.Hour
		heard := make(chan *nats.Msg, 100)
		for _, k := range events.OutcomeKinds {
			if _, err := w.conn.ChanSubscribe(events.Published(k, events.Address{Tenant: "default", Session: "*"}), heard); err != nil {
				t.Fatal(err)
			}
		}
		test(t, w, heard)
	})
}

// hear takes the next outcome, which must have come by now.
func hear[T any](t *testing.T, heard chan *nats.Msg) *T {
	t.Helper()
	synctest.Wait()
	select {
	case m := <-heard:
		k, _, err := events.ParsePublished(m.Subject)
		if err != nil {
			t.Fatal(err)
		}
		body, err := events.DecodeOutcome(k, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := body.(*T); ok {
			return v
		}
		t.Fatalf("heard %s %s", m.Subject, m.Data)
	default:
		t.Fatal("nothing was told")
	}
	return nil
}

// Streams share one age; an idle partition renews its marker, and the text
// of its config with it, so that after any time the next owner goes on from there.
func TestIdlePartitionIsRenewed(t *testing.T) {
	retained(t, func(t *testing.T, w *world, _ chan *nats.Msg) {
		if w.streams.MaxAge != 100*time.Minute {
			t.Fatalf("the streams keep everything for %s", w.streams.MaxAge)
		}
		var lost []error
		stop := w.run("a", worker.Listener{PartitionReleased: func(e worker.PartitionReleased) { lost = append(lost, e.Err) }})
		seq := w.publish(events.KindTurn, "s", turn(1))
		first := time.Now()
		time.Sleep(3 * 100 * time.Minute)
		marker, err := commit.LastMarker(t.Context(), w.conn, 0)
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(marker.Time); marker.Cursor != seq || age > time.Minute+w.markEvery {
			t.Errorf("after three ages the marker stands at %d, not %d, and is %s old", marker.Cursor, seq, age)
		}
		if _, err := commit.GetConfig(t.Context(), w.js, marker.Config); err != nil {
			t.Error(err)
		}
		state, err := topology.State(t.Context(), w.js, topology.OutcomesStream)
		if err != nil {
			t.Fatal(err)
		}
		if most := 2*100 + 20; state.Messages > uint64(most) {
			t.Errorf("%d messages are in OUTCOMES; an idle partition writes a hundred an age, and a config text as often", state.Messages)
		}
		if log, err := topology.State(t.Context(), w.js, topology.LogStream); err != nil || log.Messages != 0 {
			t.Errorf("the log holds %d messages, the only one of %s; %v", log.Messages, first, err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(lost) != 1 || lost[0] != nil {
			t.Errorf("the partition was lost: %v", lost)
		}
		w.ledgers = ""
		h := &watched{}
		w.serveAs("b", h, func() { w.publish(events.KindTurn, "s", turn(1)) })
		if again, err := commit.LastMarker(t.Context(), w.conn, 0); err != nil || again.Cursor != seq+1 || again.Epoch != marker.Epoch+1 {
			t.Errorf("the next owner stands at %d in epoch %d after %d in epoch %d; %v", again.Cursor, again.Epoch, marker.Cursor, marker.Epoch, err)
		}
	})
}

// What is older than half the age is condensed whatever the usage, the
// first pair included: the session goes on for ages, and its history can be read at
// any time.
func TestOldEntriesAreCondensed(t *testing.T) {
	retained(t, func(t *testing.T, w *world, heard chan *nats.Msg) {
		w.config, w.summarizer = newConfig(t, compaction.DefaultPolicy()), extract.New()
		stop := w.run("a", worker.Listener{})
		generations := int64(0)
		for n := 1; n <= 40; n++ {
			text := strings.Repeat(fmt.Sprintf("word %d ", n), 30)
			w.publish(events.KindTurn, "s", fmt.Appendf(nil, `{"turn":%d,"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`, n, text, text))
			time.Sleep(10 * time.Minute)
			for len(heard) > 0 {
				c := hear[events.Compacted](t, heard)
				if !c.Compacted || c.MessagesOmitted || c.Reason != events.ReasonBackground || c.Budget.UsagePPM > 50_000 {
					t.Fatalf("after turn %d told %+v", n, c)
				}
				if got := validate.Messages(c.Format, c.Messages); len(got) > 0 || !strings.Contains(string(c.Messages[0]), "condensed") {
					t.Fatalf("after turn %d the history begins with %s; %v", n, c.Messages[0], got)
				}
				generations = c.Generation
			}
			if n == 5 && generations > 0 {
				t.Error("something is condensed before it is old")
			}
		}
		if generations < 8 || generations > 20 {
			t.Errorf("%d generations in four ages; a quarter of one should lie between two", generations)
		}
		reply, err := w.conn.Request("compactd.context", []byte(`{"session":"s"}`), time.Minute)
		if err != nil || reply.Header.Get("Nats-Service-Error") != "" {
			t.Errorf("the history cannot be read: %v %v", err, reply)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// A ledger idle for the age is dropped, from memory and file, and its next
// turn must carry replaces_from 1. One turn before that it goes on.
func TestIdleLedgerIsDropped(t *testing.T) {
	retained(t, func(t *testing.T, w *world, heard chan *nats.Msg) {
		stop := w.run("a", worker.Listener{})
		w.publish(events.KindTurn, "s", turn(1))
		time.Sleep(99 * time.Minute)
		w.publish(events.KindTurn, "s", turn(2))
		time.Sleep(time.Minute)
		if c := hear[events.Compacted](t, heard); c.Reason != events.ReasonAge || c.Through.Turn != 2 || len(c.Messages) != 3 {
			t.Errorf("a turn within the age is answered by %+v; want the first turn truncated", c)
		}
		time.Sleep(100 * time.Minute)
		w.publish(events.KindTurn, "s", turn(3))
		time.Sleep(time.Minute)
		if r := hear[events.Rejected](t, heard); r.Code != events.CodeTurnGap || r.Expected != 1 {
			t.Errorf("a turn after the age is answered by %+v", r)
		}
		w.publish(events.KindTurn, "s", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"all of it"}]}`))
		w.publish(events.KindTurn, "s", []byte(`{"turn":2,"messages":[{"role":"user","content":"and more"}]}`))
		time.Sleep(time.Minute)
		if len(heard) > 0 {
			t.Fatalf("the new beginning is answered by %s", (<-heard).Data)
		}
		if len(holders(t, "default.s", w.ledgers)) == 0 {
			t.Fatal("the ledger is in no file: the test is blind")
		}
		time.Sleep(115 * time.Minute)
		reply, err := w.conn.Request("compactd.stats", []byte(`{"session":"s"}`), time.Minute)
		if err != nil || !strings.Contains(string(reply.Data), `"known":false`) {
			t.Errorf("after the age and what clocks may differ by: %s, %v", reply.Data, err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s, _, err := kv.Open(kv.Options{Path: filepath.Join(w.ledgers, "p0.db"), Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Abandon()
		if n := s.Sessions(); n != 0 {
			t.Errorf("%d ledgers are in the file", n)
		}
	})
}

// A session is dropped by the time of the log, not by that of a worker
// that is behind: a turn within the age finds its ledger, however late it is read.
func TestLedgerWaitsForUnreadTurn(t *testing.T) {
	retained(t, func(t *testing.T, w *world, heard chan *nats.Msg) {
		var last compaction.Seq // behind it nothing is read, until goOn
		goOn := make(chan struct{})
		stop := w.run("a", worker.Listener{Applied: func(e worker.Applied) {
			if last = e.Seq; last == 2 {
				<-goOn
			}
		}})
		w.publish(events.KindTurn, "s", turn(1))
		time.Sleep(50 * time.Minute)
		w.publish(events.KindTurn, "other", turn(1))
		time.Sleep(10 * time.Minute)
		w.publish(events.KindTurn, "s", turn(2))
		time.Sleep(65 * time.Minute)
		if last != 2 {
			t.Fatalf("%d events are read: the test is blind", last)
		}
		close(goOn)
		time.Sleep(2 * time.Minute)
		for len(heard) > 0 {
			m := <-heard
			if k, _, err := events.ParsePublished(m.Subject); err != nil || k == events.KindRejected {
				t.Errorf("heard %s %s", m.Subject, m.Data)
			}
		}
		var stats events.StatsResponse
		if e := w.request(events.SubjectStats, `{"session":"s"}`, &stats); e != nil || stats.Turns != 2 {
			t.Errorf("the session has %d turns; %v", stats.Turns, e)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
