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
	"compactd/internal/worker"
)

// publishAll publishes turn n of some sessions.
func (w *world) publishAll(sessions, n int) {
	for s := range sessions {
		w.publish(events.KindTurn, fmt.Sprintf("s%d", s), agentTurn(20+s, n))
	}
}

// A restart under another policy changes nothing that was told; what follows
// names the new config, and the texts of both are kept.
func TestRestartWithAnotherConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	before := w.config
	stop := w.run("a", worker.Listener{})
	for n := 1; n <= 12; n++ {
		w.publishAll(6, n)
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	told := w.toldBySession()

	p := withoutSummaries()
	p.Threshold, p.Target, p.Info = 600_000, 300_000, 500_000
	w.config = newConfig(t, p)
	stop = w.run("b", worker.Listener{})
	for n := 13; n <= 24; n++ {
		w.publishAll(6, n)
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	after := w.toldBySession()
	if len(told) == 0 {
		t.Fatal("nothing was told under the first config")
	}
	for a, all := range after {
		old := len(told[a])
		if diff := cmp.Diff(told[a], all[:old], cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("%s: what was told has changed (-before +after):\n%s", a, diff)
		}
		if len(all) == old {
			t.Errorf("%s: nothing was told under the new config", a)
		}
		for i, o := range all {
			want := before.Hash()
			if i >= old {
				want = w.config.Hash()
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
	for _, c := range []*compaction.Config{before, w.config} {
		text, err := commit.GetConfig(t.Context(), w.js, c.Hash())
		if err != nil || string(text) != string(c.Text()) {
			t.Errorf("text of config %s: %v", c.Hash(), err)
		}
	}
}

// The number of partitions changes nothing that a session is told.
func TestPartitions(t *testing.T) {
	t.Parallel()
	var first map[string][]string
	for _, p := range []int{1, 4, 16} {
		w := openWorld(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: p})
		if w.streams.Partitions != p {
			t.Fatalf("%d partitions, not %d", w.streams.Partitions, p)
		}
		stop := w.run("a", worker.Listener{})
		for n := 1; n <= 15; n++ {
			w.publishAll(10, n)
		}
		w.settle()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		w.wantAsLogSays()
		told := map[string][]string{}
		for a, all := range w.toldBySession() {
			for _, o := range all {
				told[a.address.String()] = append(told[a.address.String()], afterToken(o.subject, 2)+" "+o.data)
			}
		}
		if first == nil {
			first = told
		}
		if diff := cmp.Diff(first, told); diff != "" || len(told) != 10 {
			t.Errorf("%d partitions tell %d sessions something else than 1 (-1 +%d):\n%s", p, len(told), p, diff)
		}
	}
}

// How much is read and decided ahead of the commits changes nothing that is
// told, nor does a stop in the middle of a backlog: what is stored then is a
// beginning of what the log says, up to the markers.
func TestStopInBacklog(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{1, 7, 0} {
		w := newWorld(t, t.TempDir())
		w.maxAhead = ahead
		for n := 1; n <= 40; n++ {
			w.publishAll(8, n)
		}
		committed := make(chan struct{}, 4096)
		r := w.start("a", worker.Listener{Committed: func(worker.Committed) { committed <- struct{}{} }})
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
		w.wantUpToMarkers()
		stop := w.run("b", worker.Listener{})
		w.settle()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		w.wantAsLogSays()
	}
}

// A stop marks how far the events are decided, also when nothing is told about
// them and the next marker is far away.
func TestStopMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	w.markEvery = time.Hour
	folded := make(chan worker.Applied, 64)
	stop := w.run("a", worker.Listener{Applied: func(f worker.Applied) { folded <- f }})
	for n := 1; n <= 8; n++ {
		w.publish(events.KindTurn, fmt.Sprintf("s%d", n), []byte(`{"messages":[{"role":"user","content":"hi"}]}`))
	}
	for range 8 {
		if f := <-folded; f.Outcomes != 0 {
			t.Errorf("%d outcomes for a turn that fits", f.Outcomes)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for p := range w.streams.Partitions {
		m, err := commit.LastMarker(t.Context(), w.conn, p)
		if err != nil {
			t.Fatal(err)
		}
		last = max(last, m.Cursor)
	}
	if last != 8 {
		t.Errorf("the markers end at %d, not at 8", last)
	}
}

// wantUpToMarkers wants what the log says about the events up to the marker of
// each partition, and nothing more.
func (w *world) wantUpToMarkers() {
	w.t.Helper()
	want := map[place][]outcome{}
	for p, all := range bySession(w.redecided()) {
		m, err := commit.LastMarker(w.t.Context(), w.conn, p.partition)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, o := range all {
			var body struct {
				Cause events.Cause `json:"caused_by"`
			}
			if err := events.Unmarshal([]byte(o.data), &body); err != nil {
				w.t.Fatal(err)
			}
			if body.Cause.Seq <= m.Cursor {
				want[p] = append(want[p], o)
			}
		}
	}
	if diff := cmp.Diff(want, w.toldBySession(), cmp.AllowUnexported(outcome{}, place{})); diff != "" {
		w.t.Errorf("what is stored is not what the log says up to the markers (-log +stored):\n%s", diff)
	}
}

// A marker never names an event whose outcome is not stored with it or before
// it, however many outcomes wait for one commit.
func TestMarkerIsNotAhead(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
	const total = 4000
	js, err := jetstream.New(w.connect(), jetstream.WithPublishAsyncMaxPending(total), jetstream.WithDefaultTimeout(waitLimit))
	if err != nil {
		t.Fatal(err)
	}
	for range total { // each of them is rejected
		if _, err := js.PublishAsync("session.turn.default.s", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	var commits []worker.Committed // of one partition: by one goroutine
	stop := w.run("a", worker.Listener{Committed: func(c worker.Committed) { commits = append(commits, c) }})
	w.settle()
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
