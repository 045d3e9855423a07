package scenarios_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/audit"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/erase"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/kv"
	"compactd/internal/summarize/extract"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// withRetention runs a test in fake time, in an environment whose streams store messages for 100
// minutes.
func withRetention(t *testing.T, test func(t *testing.T, env *workertest.Env, received chan *nats.Msg)) {
	withAge(t, 100*time.Minute, test)
}

// withAge is withRetention for another age.
func withAge(t *testing.T, age time.Duration, test func(t *testing.T, env *workertest.Env, received chan *nats.Msg)) {
	dir, ledgers := t.TempDir(), t.TempDir()
	workertest.EmptyPools()
	defer workertest.EmptyPools()
	holdClock(t)
	synctest.Test(t, func(t *testing.T) {
		defer keepClock()()
		env := workertest.Open(t, embedded.Config{Dir: dir, Durability: embedded.DurablePower}, topology.Config{Partitions: 1, MaxAge: age})
		defer env.Stop()
		env.MarkerEvery, env.Ledgers, env.CheckpointEvery, env.LeaseTTL = 30*time.Second, ledgers, 30*time.Second, time.Hour
		received := make(chan *nats.Msg, 100)
		for _, k := range events.OutcomeKinds {
			if _, err := env.Conn.ChanSubscribe(events.Published(k, events.Address{Tenant: "default", Session: "*"}), received); err != nil {
				t.Fatal(err)
			}
		}
		test(t, env, received)
	})
}

// nextOutcome takes the next outcome, which must have arrived.
func nextOutcome[T any](t *testing.T, received chan *nats.Msg) *T {
	t.Helper()
	synctest.Wait()
	select {
	case m := <-received:
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
		t.Fatalf("received %s %s", m.Subject, m.Data)
	default:
		t.Fatal("no outcome was published")
	}
	return nil
}

// All streams have one age. An idle partition renews its marker, and the text of its config with
// it, so that the next owner can continue from there after any time.
func TestIdlePartitionIsRenewed(t *testing.T) {
	withRetention(t, func(t *testing.T, env *workertest.Env, _ chan *nats.Msg) {
		if env.Streams.MaxAge != 100*time.Minute {
			t.Fatalf("the age of the streams is %s", env.Streams.MaxAge)
		}
		var released []error
		stop := env.Run("a", observe.Listener{PartitionReleased: func(e observe.PartitionReleased) { released = append(released, e.Err) }})
		seq := env.Publish(events.KindTurn, "s", workertest.Turn(1))
		first := time.Now()
		time.Sleep(3 * 100 * time.Minute)
		marker, err := commit.LastMarker(t.Context(), env.Conn, 0)
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(marker.Time); marker.Cursor != seq || age > time.Minute+env.MarkerEvery {
			t.Errorf("after three ages the marker is at %d, not %d, and is %s old", marker.Cursor, seq, age)
		}
		if err := commit.GetConfig(t.Context(), env.JS, marker.Config, func([]byte) error { return nil }); err != nil {
			t.Error(err)
		}
		state, err := topology.State(t.Context(), env.JS, topology.OutcomesStream)
		if err != nil {
			t.Fatal(err)
		}
		if most := 2*100 + 20; state.Messages > uint64(most) {
			t.Errorf("%d messages are in OUTCOMES; an idle partition writes a hundred an age, and a config text as often", state.Messages)
		}
		if log, err := topology.State(t.Context(), env.JS, topology.LogStream); err != nil || log.Messages != 0 {
			t.Errorf("the log holds %d messages, the only one of %s; %v", log.Messages, first, err)
		}
		stop()
		if len(released) != 1 || released[0] != nil {
			t.Errorf("the partition was released: %v", released)
		}
		env.Ledgers = ""
		seen := &ledgerEvents{}
		serveAs(env, "b", seen, func() { env.Publish(events.KindTurn, "s", workertest.Turn(1)) })
		if again, err := commit.LastMarker(t.Context(), env.Conn, 0); err != nil || again.Cursor != seq+1 || again.Epoch != marker.Epoch+1 {
			t.Errorf("the next owner is at %d in epoch %d after %d in epoch %d; %v", again.Cursor, again.Epoch, marker.Cursor, marker.Epoch, err)
		}
	})
}

// A session of a tenant with a limit is erased once it had no event for so many days, also one that has ended; one that
// goes on stays, and so do those of other tenants.
func TestTenantKeepsDays(t *testing.T) {
	withAge(t, 30*24*time.Hour, func(t *testing.T, env *workertest.Env, _ chan *nats.Msg) {
		p := workertest.WithoutSummaries()
		p.Limits.IdleDays = 1
		env.MarkerEvery, env.CheckpointEvery, env.LeaseTTL = time.Hour, time.Hour, 24*time.Hour
		var err error
		if env.Config, err = env.Config.WithTenants(map[string]policy.Policy{"acme": p}); err != nil {
			t.Fatal(err)
		}
		stop := env.Run("a", observe.Listener{})
		for _, session := range []string{"idle", "ended", "alive"} {
			env.PublishFor("acme", events.KindTurn, session, workertest.Turn(1))
		}
		env.PublishFor("acme", events.KindEnd, "ended", []byte(`{}`))
		env.Publish(events.KindTurn, "idle", workertest.Turn(1))
		time.Sleep(16 * time.Hour)
		if left, err := erase.Sessions(t.Context(), env.JS, erase.Any, "acme"); err != nil || len(left) != 3 {
			t.Errorf("after 16 hours there are %v; %v", left, err)
		}
		env.PublishFor("acme", events.KindTurn, "alive", workertest.Turn(2))
		time.Sleep(16 * time.Hour)
		want := []events.Address{{Tenant: "acme", Session: "alive"}}
		if left, err := erase.Sessions(t.Context(), env.JS, erase.Any, "acme"); err != nil || !slices.Equal(left, want) {
			t.Errorf("after 32 hours there are %v, want %v; %v", left, want, err)
		}
		if left, err := erase.Sessions(t.Context(), env.JS, erase.Any, "default"); err != nil || len(left) != 1 {
			t.Errorf("of another tenant there are %v; %v", left, err)
		}
		kind := string(events.KindForget)
		if got := env.Audit(audit.Selection{Action: kind}); !slices.Equal(got, []string{kind + " worker acme.ended", kind + " worker acme.idle"}) {
			t.Errorf("the audit log has %v", got)
		}
		stop()
	})
}

// Idle sessions of a tenant with a limit are erased too where streams have no maximum age, and where each owner of a
// partition serves it for less time than there is between two looks.
func TestTenantKeepsDaysOfShortOwners(t *testing.T) {
	withAge(t, 30*24*time.Hour, func(t *testing.T, env *workertest.Env, _ chan *nats.Msg) {
		p := workertest.WithoutSummaries()
		p.Limits.IdleDays = 1
		env.Config = workertest.NewConfig(t, p)
		env.MarkerEvery, env.CheckpointEvery, env.LeaseTTL = time.Hour, time.Hour, 24*time.Hour
		serve := func(d time.Duration) {
			t.Helper()
			stop := env.Run("a", observe.Listener{})
			time.Sleep(d)
			stop()
		}
		left := func(when string, want int) {
			t.Helper()
			if found, err := erase.Sessions(t.Context(), env.JS, erase.Any, erase.Any); err != nil || len(found) != want {
				t.Errorf("%s there are %v, want %d; %v", when, found, want, err)
			}
		}
		env.Publish(events.KindTurn, "s", workertest.Turn(1))
		serve(time.Hour)
		time.Sleep(24 * time.Hour)
		left("before the next owner", 1)
		serve(time.Hour)
		left("after an hour of it", 0)
		age := env.Streams.MaxAge
		env.Streams.MaxAge = 0
		env.Publish(events.KindTurn, "s", workertest.Turn(1))
		serve(32 * time.Hour)
		left("without a maximum age", 0)
		env.Streams.MaxAge = age
	})
}

// Messages older than half the age are condensed whatever the usage, the first pair included. So
// a session continues for longer than the age, and its history can be read at any time.
func TestOldEntriesAreCondensed(t *testing.T) {
	withRetention(t, func(t *testing.T, env *workertest.Env, received chan *nats.Msg) {
		env.Config, env.Summarizer = workertest.NewConfig(t, policy.Default()), extract.New()
		stop := env.Run("a", observe.Listener{})
		generations := int64(0)
		for n := 1; n <= 40; n++ {
			text := strings.Repeat(fmt.Sprintf("word %d ", n), 30)
			env.Publish(events.KindTurn, "s", fmt.Appendf(nil, `{"turn":%d,"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`, n, text, text))
			time.Sleep(10 * time.Minute)
			for len(received) > 0 {
				c := nextOutcome[events.Compacted](t, received)
				if !c.Compacted || c.MessagesOmitted || c.Reason != events.ReasonBackground || c.Budget.UsagePPM > 50_000 {
					t.Fatalf("after turn %d published %+v", n, c)
				}
				if got := validate.Messages(c.Format, c.Messages); len(got) > 0 || !strings.Contains(string(c.Messages[0]), "condensed") {
					t.Fatalf("after turn %d the history begins with %s; %v", n, c.Messages[0], got)
				}
				generations = c.Generation
			}
			if n == 5 && generations > 0 {
				t.Error("messages are condensed before half the age")
			}
		}
		if generations < 8 || generations > 20 {
			t.Errorf("%d generations in four ages; want about one in a quarter of the age", generations)
		}
		reply, err := env.Conn.Request("compactd.context", []byte(`{"session":"s"}`), time.Minute)
		if err != nil || reply.Header.Get("Nats-Service-Error") != "" {
			t.Errorf("the history cannot be read: %v %v", err, reply)
		}
		stop()
	})
}

// A ledger that is idle for the age is dropped, from memory and file, and its next turn must
// carry replaces_from 1. A session with a turn before that continues.
func TestIdleLedgerIsDropped(t *testing.T) {
	withRetention(t, func(t *testing.T, env *workertest.Env, received chan *nats.Msg) {
		stop := env.Run("a", observe.Listener{})
		env.Publish(events.KindTurn, "s", workertest.Turn(1))
		time.Sleep(99 * time.Minute)
		env.Publish(events.KindTurn, "s", workertest.Turn(2))
		time.Sleep(time.Minute)
		if c := nextOutcome[events.Compacted](t, received); c.Reason != events.ReasonAge || c.Through.Turn != 2 || len(c.Messages) != 3 {
			t.Errorf("a turn within the age leads to %+v; want the first turn truncated", c)
		}
		time.Sleep(100 * time.Minute)
		env.Publish(events.KindTurn, "s", workertest.Turn(3))
		time.Sleep(time.Minute)
		if r := nextOutcome[events.Rejected](t, received); r.Code != events.CodeTurnGap || r.Expected != 1 {
			t.Errorf("a turn after the age leads to %+v", r)
		}
		env.Publish(events.KindTurn, "s", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"all of it"}]}`))
		env.Publish(events.KindTurn, "s", []byte(`{"turn":2,"messages":[{"role":"user","content":"and more"}]}`))
		time.Sleep(time.Minute)
		if len(received) > 0 {
			t.Fatalf("the new history leads to %s", (<-received).Data)
		}
		if len(filesContaining(t, "default.s", env.Ledgers)) == 0 {
			t.Fatal("the ledger is in no file: the test shows nothing")
		}
		time.Sleep(115 * time.Minute)
		reply, err := env.Conn.Request("compactd.stats", []byte(`{"session":"s"}`), time.Minute)
		if err != nil || !strings.Contains(string(reply.Data), `"known":false`) {
			t.Errorf("after the age and the tolerance for clocks: %s, %v", reply.Data, err)
		}
		stop()
		s, _, err := kv.Open(kv.Options{Path: filepath.Join(env.Ledgers, "p0.db"), Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Abandon()
		if left, err := s.After(events.Address{}, 100); err != nil || len(left) > 0 {
			t.Errorf("the file has ledgers of %v, error %v", left, err)
		}
	})
}

// A session is dropped by the time of the log, not by that of a worker that is behind: a turn
// within the age finds its ledger, however late it is read.
func TestLedgerWaitsForUnreadTurn(t *testing.T) {
	withRetention(t, func(t *testing.T, env *workertest.Env, received chan *nats.Msg) {
		var last measure.Seq // no event after 2 is read until goOn
		goOn := make(chan struct{})
		stop := env.Run("a", observe.Listener{Applied: func(e observe.Applied) {
			if last = e.Seq; last == 2 {
				<-goOn
			}
		}})
		env.Publish(events.KindTurn, "s", workertest.Turn(1))
		time.Sleep(50 * time.Minute)
		env.Publish(events.KindTurn, "other", workertest.Turn(1))
		time.Sleep(10 * time.Minute)
		env.Publish(events.KindTurn, "s", workertest.Turn(2))
		time.Sleep(65 * time.Minute)
		if last != 2 {
			t.Fatalf("%d events are read, want 2: the test shows nothing", last)
		}
		close(goOn)
		time.Sleep(2 * time.Minute)
		for len(received) > 0 {
			m := <-received
			if k, _, err := events.ParsePublished(m.Subject); err != nil || k == events.KindRejected {
				t.Errorf("received %s %s", m.Subject, m.Data)
			}
		}
		var stats events.StatsResponse
		if e := env.Request(events.SubjectStats, `{"session":"s"}`, &stats); e != nil || stats.Turns != 2 {
			t.Errorf("the session has %d turns; %v", stats.Turns, e)
		}
		stop()
	})
}
