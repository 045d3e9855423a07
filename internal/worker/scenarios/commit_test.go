package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// publishAll publishes turn n of some sessions.
func publishAll(env *workertest.Env, sessions, n int) {
	for s := range sessions {
		env.Publish(events.KindTurn, fmt.Sprintf("s%d", s), agentTurn(20+s, n))
	}
}

// A restart under another policy changes no published outcome. New outcomes name the new
// config, and the texts of both configs are stored.
func TestRestartWithAnotherConfig(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	before := env.Config
	stop := env.Run("a", observe.Listener{})
	for n := 1; n <= 12; n++ {
		publishAll(env, 6, n)
	}
	env.AwaitDecided()
	stop()
	first := env.OutcomesBySession()

	p := workertest.WithoutSummaries()
	p.Threshold, p.Target, p.Info = 600_000, 300_000, 500_000
	env.Config = workertest.NewConfig(t, p)
	stop = env.Run("b", observe.Listener{})
	for n := 13; n <= 24; n++ {
		publishAll(env, 6, n)
	}
	env.AwaitDecided()
	stop()
	after := env.OutcomesBySession()
	if len(first) == 0 {
		t.Fatal("no outcome was published under the first config")
	}
	for a, all := range after {
		old := len(first[a])
		if diff := cmp.Diff(first[a], all[:old]); diff != "" {
			t.Errorf("%s: published outcomes have changed (-before +after):\n%s", a, diff)
		}
		if len(all) == old {
			t.Errorf("%s: no outcome was published under the new config", a)
		}
		for i, o := range all {
			want := before.Hash()
			if i >= old {
				want = env.Config.Hash()
			}
			var body struct {
				Config string `json:"config"`
			}
			if err := codec.Unmarshal([]byte(o.Data), &body); err != nil {
				t.Fatal(err)
			}
			if body.Config != want {
				t.Errorf("%s: outcome %d of %d names config %s, not %s", a, i, len(all), body.Config, want)
			}
		}
	}
	for _, c := range []*compaction.Config{before, env.Config} {
		if err := commit.GetConfig(t.Context(), env.JS, c.Hash(), func(text []byte) error {
			if string(text) != string(c.Text()) {
				t.Errorf("text of config %s: %s", c.Hash(), text)
			}
			return nil
		}); err != nil {
			t.Errorf("text of config %s: %v", c.Hash(), err)
		}
	}
}

// The number of partitions changes no outcome of a session.
func TestPartitions(t *testing.T) {
	t.Parallel()
	var first map[string][]string
	for _, p := range []int{1, 4, 16} {
		env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: p})
		if env.Streams.Partitions.Count() != p {
			t.Fatalf("%d partitions, not %d", env.Streams.Partitions.Count(), p)
		}
		stop := env.Run("a", observe.Listener{})
		for n := 1; n <= 15; n++ {
			publishAll(env, 10, n)
		}
		env.AwaitDecided()
		stop()
		env.WantRedecided()
		got := map[string][]string{}
		for a, all := range env.OutcomesBySession() {
			for _, o := range all {
				got[a.Address.String()] = append(got[a.Address.String()], afterToken(o.Subject, 2)+" "+o.Data)
			}
		}
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" || len(got) != 10 {
			t.Errorf("with %d partitions outcomes of %d sessions differ from those with 1 (-1 +%d):\n%s", p, len(got), p, diff)
		}
	}
}

// How far decisions are ahead of the commits changes no outcome, nor does a stop in the middle
// of a backlog: the outcomes stored then are those of the log up to the markers.
func TestStopInBacklog(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{1, 7, 0} {
		env := workertest.New(t, t.TempDir())
		env.MaxAhead = ahead
		for n := 1; n <= 40; n++ {
			publishAll(env, 8, n)
		}
		committed := make(chan struct{}, 4096)
		r := env.Start("a", observe.Listener{Committed: func(observe.Committed) { committed <- struct{}{} }})
		for range 4 {
			select {
			case <-committed:
			case err := <-r.Done:
				t.Fatalf("the worker ended: %v", err)
			}
		}
		r.Stop()
		wantUpToMarkers(env)
		stop := env.Run("b", observe.Listener{})
		env.AwaitDecided()
		stop()
		env.WantRedecided()
	}
}

// A stop writes markers up to the last decided events, also when these have no outcomes and the
// next marker is not due.
func TestStopWritesMarkers(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.MarkerEvery = time.Hour
	applied := make(chan observe.Applied, 64)
	stop := env.Run("a", observe.Listener{Applied: func(f observe.Applied) { applied <- f }})
	for n := 1; n <= 8; n++ {
		env.Publish(events.KindTurn, fmt.Sprintf("s%d", n), []byte(`{"messages":[{"role":"user","content":"hi"}]}`))
	}
	for range 8 {
		if f := <-applied; f.Outcomes != 0 {
			t.Errorf("%d outcomes for a turn that fits", f.Outcomes)
		}
	}
	stop()
	last := uint64(0)
	for p := range env.Streams.Partitions.Count() {
		m, err := commit.LastMarker(t.Context(), env.Conn, p)
		if err != nil {
			t.Fatal(err)
		}
		last = max(last, m.Cursor)
	}
	if last != 8 {
		t.Errorf("the markers end at %d, not at 8", last)
	}
}

// wantUpToMarkers wants the outcomes of the events up to the marker of each partition, and no
// others.
func wantUpToMarkers(env *workertest.Env) {
	env.T.Helper()
	want := map[workertest.Place][]workertest.Outcome{}
	for p, all := range workertest.BySession(env.Redecided()) {
		m, err := commit.LastMarker(env.T.Context(), env.Conn, p.Partition)
		if err != nil {
			env.T.Fatal(err)
		}
		for _, o := range all {
			var body struct {
				Cause events.Cause `json:"caused_by"`
			}
			if err := codec.Unmarshal([]byte(o.Data), &body); err != nil {
				env.T.Fatal(err)
			}
			if body.Cause.Seq <= m.Cursor {
				want[p] = append(want[p], o)
			}
		}
	}
	if diff := cmp.Diff(want, env.OutcomesBySession()); diff != "" {
		env.T.Errorf("stored outcomes differ from those of the log up to the markers (-log +stored):\n%s", diff)
	}
}

// A marker never names an event whose outcome is not stored with it or before
// it, however many outcomes wait for one commit.
func TestMarkerIsNotAhead(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
	const total = 4000
	js, err := jetstream.New(env.Connect(), jetstream.WithPublishAsyncMaxPending(total), jetstream.WithDefaultTimeout(workertest.WaitLimit))
	if err != nil {
		t.Fatal(err)
	}
	for range total { // each of them is rejected
		if _, err := js.PublishAsync("session.turn.default.s", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	var commits []observe.Committed // of one partition: by one goroutine
	stop := env.Run("a", observe.Listener{Committed: func(c observe.Committed) { commits = append(commits, c) }})
	env.AwaitDecided()
	stop()
	stored, largest := 0, 0
	for _, c := range commits {
		stored, largest = stored+c.Outcomes, max(largest, c.Outcomes)
		if int(c.Cursor) > stored {
			t.Fatalf("the marker is at %d when %d outcomes are stored", c.Cursor, stored)
		}
	}
	if stored != total || largest < 2 || largest > commit.MaxBatch {
		t.Errorf("%d outcomes in %d commits, the largest of %d; want %d, in commits of several", stored, len(commits), largest, total)
	}
}
