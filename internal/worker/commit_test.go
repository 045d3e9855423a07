package worker_test

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
	"compactd/internal/worker/observe"
)

// publishAll publishes turn n of some sessions.
func (env *testEnv) publishAll(sessions, n int) {
	for s := range sessions {
		env.publish(events.KindTurn, fmt.Sprintf("s%d", s), agentTurn(20+s, n))
	}
}

// A restart under another policy changes no published outcome. New outcomes name the new
// config, and the texts of both configs are stored.
func TestRestartWithAnotherConfig(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	before := env.config
	stop := env.run("a", observe.Listener{})
	for n := 1; n <= 12; n++ {
		env.publishAll(6, n)
	}
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	first := env.outcomesBySession()

	p := withoutSummaries()
	p.Threshold, p.Target, p.Info = 600_000, 300_000, 500_000
	env.config = newConfig(t, p)
	stop = env.run("b", observe.Listener{})
	for n := 13; n <= 24; n++ {
		env.publishAll(6, n)
	}
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	after := env.outcomesBySession()
	if len(first) == 0 {
		t.Fatal("no outcome was published under the first config")
	}
	for a, all := range after {
		old := len(first[a])
		if diff := cmp.Diff(first[a], all[:old], cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("%s: published outcomes have changed (-before +after):\n%s", a, diff)
		}
		if len(all) == old {
			t.Errorf("%s: no outcome was published under the new config", a)
		}
		for i, o := range all {
			want := before.Hash()
			if i >= old {
				want = env.config.Hash()
			}
			var body struct {
				Config string `json:"config"`
			}
			if err := events.Unmarshal([]byte(o.data), &body); err != nil {
				t.Fatal(err)
			}
			if body.Config != want {
				t.Errorf("%s: outcome %d of %d names config %s, not %s", a, i, len(all), body.Config, want)
			}
		}
	}
	for _, c := range []*compaction.Config{before, env.config} {
		if err := commit.GetConfig(t.Context(), env.js, c.Hash(), func(text []byte) error {
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
		env := openEnv(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: p})
		if env.streams.Partitions.Count() != p {
			t.Fatalf("%d partitions, not %d", env.streams.Partitions.Count(), p)
		}
		stop := env.run("a", observe.Listener{})
		for n := 1; n <= 15; n++ {
			env.publishAll(10, n)
		}
		env.awaitDecided()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		env.wantRedecided()
		got := map[string][]string{}
		for a, all := range env.outcomesBySession() {
			for _, o := range all {
				got[a.address.String()] = append(got[a.address.String()], afterToken(o.subject, 2)+" "+o.data)
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
		env := newEnv(t, t.TempDir())
		env.maxAhead = ahead
		for n := 1; n <= 40; n++ {
			env.publishAll(8, n)
		}
		committed := make(chan struct{}, 4096)
		r := env.start("a", observe.Listener{Committed: func(observe.Committed) { committed <- struct{}{} }})
		for range 4 {
			select {
			case <-committed:
			case err := <-r.done:
				t.Fatalf("the worker ended: %v", err)
			}
		}
		if err := r.stop(); err != nil {
			t.Fatalf("stopped in a backlog: %v", err)
		}
		env.wantUpToMarkers()
		stop := env.run("b", observe.Listener{})
		env.awaitDecided()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		env.wantRedecided()
	}
}

// A stop writes markers up to the last decided events, also when these have no outcomes and the
// next marker is not due.
func TestStopWritesMarkers(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	env.markerEvery = time.Hour
	applied := make(chan observe.Applied, 64)
	stop := env.run("a", observe.Listener{Applied: func(f observe.Applied) { applied <- f }})
	for n := 1; n <= 8; n++ {
		env.publish(events.KindTurn, fmt.Sprintf("s%d", n), []byte(`{"messages":[{"role":"user","content":"hi"}]}`))
	}
	for range 8 {
		if f := <-applied; f.Outcomes != 0 {
			t.Errorf("%d outcomes for a turn that fits", f.Outcomes)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for p := range env.streams.Partitions.Count() {
		m, err := commit.LastMarker(t.Context(), env.conn, p)
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
func (env *testEnv) wantUpToMarkers() {
	env.t.Helper()
	want := map[place][]outcome{}
	for p, all := range bySession(env.redecided()) {
		m, err := commit.LastMarker(env.t.Context(), env.conn, p.partition)
		if err != nil {
			env.t.Fatal(err)
		}
		for _, o := range all {
			var body struct {
				Cause events.Cause `json:"caused_by"`
			}
			if err := events.Unmarshal([]byte(o.data), &body); err != nil {
				env.t.Fatal(err)
			}
			if body.Cause.Seq <= m.Cursor {
				want[p] = append(want[p], o)
			}
		}
	}
	if diff := cmp.Diff(want, env.outcomesBySession(), cmp.AllowUnexported(outcome{}, place{})); diff != "" {
		env.t.Errorf("stored outcomes differ from those of the log up to the markers (-log +stored):\n%s", diff)
	}
}

// A marker never names an event whose outcome is not stored with it or before
// it, however many outcomes wait for one commit.
func TestMarkerIsNotAhead(t *testing.T) {
	t.Parallel()
	env := openEnv(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
	const total = 4000
	js, err := jetstream.New(env.connect(), jetstream.WithPublishAsyncMaxPending(total), jetstream.WithDefaultTimeout(waitLimit))
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
	stop := env.run("a", observe.Listener{Committed: func(c observe.Committed) { commits = append(commits, c) }})
	env.awaitDecided()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
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
