package agents_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
)

// nextSignal is the next event of a kind.
func nextSignal(t *testing.T, from <-chan workertest.Event, kind events.Kind) workertest.Event {
	t.Helper()
	for {
		if e := workertest.NextEvent(t, from); e.Name == string(kind) {
			return e
		}
	}
}

// An operator compacts, rewinds and ends a session by requests to any worker, sees each outcome as it is
// stored, and resumes after the last one that was received.
func TestConsoleActs(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	for n := 1; n <= 8; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	env.AwaitDecided()
	lines, stop := workertest.Signals(t, m, "?tenant=default&session=s1", "")
	act := func(verb, body string, want int) (out events.EventResponse) {
		t.Helper()
		status, answer := workertest.Post(t, m, "/v1/sessions/default/s1/"+verb, body)
		if err := codec.Unmarshal([]byte(answer), &out); err != nil || status != want {
			t.Fatalf("%s: %d %v %.300s", verb, status, err, answer)
		}
		return out
	}
	if out := act("compact", `{"policy":{"target":0.2}}`, http.StatusOK); !out.Accepted || out.Compaction == nil {
		t.Errorf("compact: %+v", out)
	}
	first := nextSignal(t, lines, events.KindCompacted)
	if !strings.Contains(first.Data, `"session":"s1"`) {
		t.Errorf("signal %s", first.Data)
	}
	stop()
	if out := act("rewind", `{"generation":0}`, http.StatusOK); !out.Accepted {
		t.Errorf("rewind: %+v", out)
	}
	act("rewind", `{"generation":99}`, http.StatusUnprocessableEntity)
	if out := act("compact", `{"v":1,"focuss":"the flag","policy":{"target":0.2}}`, http.StatusOK); !slices.Equal(out.Unknown, []string{"focuss"}) {
		t.Errorf("a misspelt field: %+v", out)
	}
	if status, body := workertest.Post(t, m, "/v1/sessions/default/s1/check", `{"token":5}`); status != http.StatusOK || !strings.Contains(body, `"unknown_fields":["token"]`) {
		t.Errorf("check with a misspelt field: %d %s", status, body)
	}
	if status, body := workertest.Post(t, m, "/v1/sessions/default/s1/check", `{"tokens":5}`); status != http.StatusOK || strings.Contains(body, "unknown_fields") {
		t.Errorf("check: %d %s", status, body)
	}
	again, stop := workertest.Signals(t, m, "", first.ID)
	if e := nextSignal(t, again, events.KindCompacted); e.ID == first.ID {
		t.Errorf("%s came again", e.ID)
	}
	nextSignal(t, again, events.KindRejected)
	stop()
	if out := act("end", ``, http.StatusOK); !out.Accepted {
		t.Errorf("end: %+v", out)
	}
	if status, body := workertest.Post(t, m, "/v1/sessions/default/s1/turns", `{}`); status != http.StatusNotFound {
		t.Errorf("turns: %d %s", status, body)
	}
	if status, body := workertest.Get(t, m, "/v1/events?after=999999999", "", ""); status != http.StatusGone {
		t.Errorf("events behind the end: %d %s", status, body)
	}
}

// However many operators follow what OUTCOMES gets, one consumer reads it. One that resumes gets what one that stayed
// got, each once and in order; what is no longer stored is gone.
func TestSignalsShareAReader(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	stayed, stop := workertest.Signals(t, m, "", "")
	defer stop()
	consumers := func() int {
		t.Helper()
		s, err := env.JS.Stream(t.Context(), topology.OutcomesStream)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.Consumers
	}
	before := consumers()
	for range 8 {
		_, stop := workertest.Signals(t, m, "", "")
		defer stop()
	}
	if n := consumers(); n != before {
		t.Errorf("%d consumers of one operator, %d of nine", before, n)
	}
	for n := 1; n <= 30; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
		if n == 20 { // in a partition without events: no worker committed it
			env.AwaitDecided()
			other := (events.PartitionOf(events.Address{Tenant: "default", Session: "s1"}, 4) + 1) % 4
			if _, err := env.JS.Publish(t.Context(), fmt.Sprintf("out.%d.compacted.default.s1", other), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
	}
	env.AwaitDecided()
	var want []string // of all compactions
	for _, e := range env.EventsOf("s1") {
		if e.Name == string(events.KindCompacted) {
			want = append(want, e.ID)
		}
	}
	var got []workertest.Event
	var ids []string
	for range want {
		e := nextSignal(t, stayed, events.KindCompacted)
		got, ids = append(got, e), append(ids, e.ID)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("the operator that stayed got %v, want %v", ids, want)
	}
	for k := range want[1:] {
		again, stop := workertest.Signals(t, m, "", ids[k])
		for _, w := range got[k+1:] {
			if e := nextSignal(t, again, events.KindCompacted); e != w {
				t.Fatalf("behind %s: %v, want %v", ids[k], e, w)
			}
		}
		stop()
	}
	s, err := env.JS.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	last, _ := strconv.ParseUint(ids[len(ids)-1], 10, 64)
	if err := s.Purge(t.Context(), jetstream.WithPurgeSequence(last)); err != nil {
		t.Fatal(err)
	}
	if status, body := workertest.Get(t, m, "/v1/events?after="+ids[0], "", ""); status != http.StatusGone {
		t.Errorf("behind what is no longer stored: %d %s", status, body)
	}
}

// Each take-over is a signal of its own, also to an operator that resumes from before the first commit.
func TestSignalsOfTakeovers(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	stayed, stop := workertest.Signals(t, m, "", "")
	defer stop()
	env.Run("b", owners.Listener("b"))
	var ids []string
	for range 2 { // the share of a worker that joins
		e := nextSignal(t, stayed, "takeover")
		if ids = append(ids, e.ID); !strings.Contains(e.Data, `"epoch":2`) {
			t.Errorf("signal %s", e.Data)
		}
	}
	again, stop := workertest.Signals(t, m, "", "0")
	defer stop()
	var all []string
	for range env.Streams.Partitions.Count() + 2 {
		all = append(all, nextSignal(t, again, "takeover").ID)
	}
	if !slices.Equal(all[env.Streams.Partitions.Count():], ids) {
		t.Errorf("resumed from the beginning: %v, and from now on: %v", all, ids)
	}
}

// An operator names a session as its agent did, or by its id.
func TestOperatorsNameSessions(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	const name = "chat/42 ü"
	id, err := events.SessionID(name)
	if err != nil {
		t.Fatal(err)
	}
	env.Publish(events.KindTurn, id, workertest.Turn(1))
	env.AwaitDecided()
	lines, stop := workertest.Signals(t, m, "?tenant=default&session="+url.QueryEscape(name), "")
	defer stop()
	for _, path := range []string{url.PathEscape(name), id} {
		if status, body := workertest.Get(t, m, "/v1/sessions/default/"+path+"/stats", "", ""); status != http.StatusOK || !strings.Contains(body, `"known":true`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := workertest.Post(t, m, "/v1/sessions/default/"+url.PathEscape(name)+"/compact", `{}`); status >= 300 {
		t.Errorf("compact: %d %s", status, body)
	}
	nextSignal(t, lines, events.KindCompacted)
	if status, body := workertest.Get(t, m, "/v1/sessions/default/"+strings.Repeat("a", 300)+"/stats", "", ""); status != http.StatusBadRequest {
		t.Errorf("no name: %d %s", status, body)
	}
}
