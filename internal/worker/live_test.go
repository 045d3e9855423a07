package worker_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/worker"
)

// signalsOf receives the signals of a worker behind a sequence of OUTCOMES, "" for those from now on. It returns when
// the worker answers.
func signalsOf(t *testing.T, m *worker.Monitor, query, after string) (lines <-chan string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.Addr()+"/v1/events"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", after)
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("events: %v %v", resp, err)
	}
	all := make(chan string, 256)
	go func() {
		defer resp.Body.Close()
		defer close(all)
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			all <- s.Text()
		}
	}()
	return all, cancel
}

// nextSignal is the next event of a kind: its id and its data.
func nextSignal(t *testing.T, lines <-chan string, kind string) (id, data string) {
	t.Helper()
	for found := false; ; {
		line := next(t, lines, "signal of "+kind)
		switch {
		case strings.HasPrefix(line, "event: "):
			found = line == "event: "+kind
		case found && strings.HasPrefix(line, "id: "):
			id = strings.TrimPrefix(line, "id: ")
		case found && strings.HasPrefix(line, "data: "):
			return id, strings.TrimPrefix(line, "data: ")
		}
	}
}

// An operator compacts, rewinds and ends a session by requests to any worker, sees each outcome as it is
// stored, and resumes after the last one that was received.
func TestConsoleActs(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	m := newMonitor(t, worker.MonitorConfig{})
	r := env.monitored(m, "")
	<-r.worker.Ready()
	for n := 1; n <= 8; n++ {
		env.publish(events.KindTurn, "s1", turn(n))
	}
	env.awaitDecided()
	lines, stop := signalsOf(t, m, "?tenant=default&session=s1", "")
	act := func(verb, body string, want int) (out events.EventResponse) {
		t.Helper()
		status, answer := post(t, m, "/v1/sessions/default/s1/"+verb, body)
		if err := events.Unmarshal([]byte(answer), &out); err != nil || status != want {
			t.Fatalf("%s: %d %v %.300s", verb, status, err, answer)
		}
		return out
	}
	if out := act("compact", `{"policy":{"target":0.2}}`, http.StatusOK); !out.Accepted || out.Compaction == nil {
		t.Errorf("compact: %+v", out)
	}
	first, data := nextSignal(t, lines, "compacted")
	if !strings.Contains(data, `"session":"s1"`) {
		t.Errorf("signal %s", data)
	}
	stop()
	if out := act("rewind", `{"generation":0}`, http.StatusOK); !out.Accepted {
		t.Errorf("rewind: %+v", out)
	}
	act("rewind", `{"generation":99}`, http.StatusUnprocessableEntity)
	again, stop := signalsOf(t, m, "", first)
	if id, _ := nextSignal(t, again, "compacted"); id == first {
		t.Errorf("%s came again", id)
	}
	nextSignal(t, again, "rejected")
	stop()
	if out := act("end", ``, http.StatusOK); !out.Accepted {
		t.Errorf("end: %+v", out)
	}
	if status, body := post(t, m, "/v1/sessions/default/s1/turns", `{}`); status != http.StatusNotFound {
		t.Errorf("turns: %d %s", status, body)
	}
	if status, body := get(t, m, "/v1/events?after=999999999", "", ""); status != http.StatusGone {
		t.Errorf("events behind the end: %d %s", status, body)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// The fleet is shown whole by any worker: who serves each partition, and the workers that serve none.
func TestFleetIsShown(t *testing.T) {
	t.Parallel()
	env, owners := newEnv(t, t.TempDir()), newOwnership(t)
	m := newMonitor(t, worker.MonitorConfig{})
	first := env.monitored(m, "")
	<-first.worker.Ready()
	second := env.start("b", owners.listener("b"))
	<-second.worker.Ready()
	env.publish(events.KindTurn, "s1", turn(1))
	env.awaitDecided()
	status, body := get(t, m, "/v1/fleet", "", "")
	if err := schematest.Validate("fleet-response", []byte(body)); err != nil || status != http.StatusOK {
		t.Fatalf("fleet: %d %v %.300s", status, err, body)
	}
	var out events.FleetResponse
	if err := events.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	serving := map[string]int{}
	for _, p := range out.Partitions {
		if !p.Served || !p.Leased || p.Epoch == 0 {
			t.Errorf("partition %+v", p)
		}
		serving[p.Owner]++
	}
	if len(out.Partitions) != 4 || len(out.Workers) != 2 || len(serving) != 2 || len(out.Lanes) != 3 || len(out.Feed) == 0 {
		t.Errorf("the fleet: %s", body)
	}
	for _, w := range out.Workers {
		if !w.Answered || w.Name == "" || w.CPUs == 0 || w.Memory == 0 {
			t.Errorf("worker %+v", w)
		}
	}
	for _, stop := range []func() error{first.stop, second.stop} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}
