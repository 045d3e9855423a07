package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/summarize"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/service"
)

// The fleet is shown whole by any worker: who serves each partition, and the workers that serve none.
func TestFleetIsShown(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	env.Run("b", owners.Listener("b"))
	env.Publish(events.KindTurn, "s1", workertest.Turn(1))
	env.AwaitDecided()
	status, body := workertest.Get(t, m, "/v1/fleet", "", "")
	if err := schematest.Validate("fleet-response", []byte(body)); err != nil || status != http.StatusOK {
		t.Fatalf("fleet: %d %v %.300s", status, err, body)
	}
	if status, refused := workertest.Get(t, m, "/v1/fleet?partition=4", "", ""); status != http.StatusBadRequest || !strings.Contains(refused, "between 0 and 3") {
		t.Errorf("a partition that there is not: %d %s", status, refused)
	}
	var out events.FleetResponse
	if err := codec.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	serving, commits := map[string]int{}, map[string]int64{}
	for _, p := range out.Partitions {
		if !p.Served || !p.Leased || p.Epoch == 0 {
			t.Errorf("partition %+v", p)
		}
		if serving[p.Owner]++; p.Commits != nil {
			commits[p.Owner] += p.Commits.Count
		}
	}
	if len(commits) == 0 {
		t.Errorf("no partition has commits of the last minute: %s", body)
	}
	if len(out.Partitions) != 4 || len(out.Workers) != 2 || len(serving) != 2 || len(out.Lanes) != 3 || len(out.Feed) == 0 {
		t.Errorf("the fleet: %s", body)
	}
	for _, w := range out.Workers {
		if c := w.Commits; commits[w.Owner] > 0 && (c == nil || c.Count != commits[w.Owner] || c.P50 <= 0 || c.P50 > c.P99 || c.P99 > c.Longest) {
			t.Errorf("commits of worker %s: %+v, want %d", w.Name, c, commits[w.Owner])
		}
		if !w.Answered || w.Name == "" || w.CPUs == 0 || w.Memory == 0 {
			t.Errorf("worker %+v", w)
		}
	}
}

// An owner that gives no answer, as a process that is stopped, does not delay the state of the fleet: that is
// answered before a list of sessions that was requested earlier, with what is known of its partitions.
func TestFleetWithoutAnOwnersAnswer(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	received := make(chan struct{}, 64)
	for id := range env.Streams.Partitions.Count() {
		if _, err := env.Conn.Subscribe(events.OwnerSubject(id, "*"), func(*nats.Msg) { received <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
	}
	env.Publish(events.KindTurn, "s1", workertest.Turn(1)) // waits
	ready := make(chan struct{})
	close(ready)
	s := service.New(service.Config{
		Read: env.Conn, Commit: env.Conn, Answers: env.Conn, JS: env.JS, Owner: "a", Ready: ready,
		Partitions: partition.NewSet(env.JS, partition.Config{Streams: env.Streams, Memory: 64 << 20, Texts: env.Conn, Compaction: env.Config}),
	})
	mux := &service.Mux{}
	service.ServeHTTP(mux, s.Serving, nil)
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	listed := make(chan struct{})
	go func() {
		defer close(listed)
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/sessions?sort=fill", http.NoBody)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-received
	resp, err := http.Get(server.URL + "/v1/fleet") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out events.FleetResponse
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || len(out.Partitions) != env.Streams.Partitions.Count() || len(out.Workers) != 1 {
		t.Errorf("the fleet: %d %v %+v", resp.StatusCode, err, out)
	}
	for _, p := range out.Partitions {
		if waits := p.Partition == int64(env.Streams.Partitions.Of(events.Address{Tenant: "default", Session: "s1"})); waits != (p.Behind == 1 && p.Lag > 0) {
			t.Errorf("partition %+v", p)
		}
	}
	select {
	case <-listed:
		t.Error("the list of sessions came before the fleet")
	default:
	}
	cancel()
	<-listed
}

// Of a lane one sees the jobs that wait, and those that a summarizer works on.
func TestFleetShowsRunningJobs(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}, 64), make(chan struct{})
	env := workertest.Summarizing(t, workertest.SummarizerFunc(func(ctx context.Context, _ summarize.Input) (*events.Summary, error) {
		begun <- struct{}{}
		select {
		case <-end:
		case <-ctx.Done():
		}
		return nil, errors.New("the test has ended")
	}))
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	env.Fill("s1", events.LaneBackground)
	workertest.Next(t, begun, "job")
	_, body := workertest.Get(t, m, "/v1/fleet", "", "")
	var out events.FleetResponse
	if err := codec.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	running := int64(0)
	for _, lane := range out.Lanes {
		running += lane.Running
	}
	if running == 0 {
		t.Errorf("no lane has a running job: %+v", out.Lanes)
	}
	close(end)
}
