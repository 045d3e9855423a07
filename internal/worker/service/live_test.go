package service_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/summarize"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/service"
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
		line := workertest.Next(t, lines, "signal of "+kind)
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
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "")
	<-r.Worker.Ready()
	for n := 1; n <= 8; n++ {
		env.Publish(events.KindTurn, "s1", workertest.Turn(n))
	}
	env.AwaitDecided()
	lines, stop := signalsOf(t, m, "?tenant=default&session=s1", "")
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
	first, data := nextSignal(t, lines, "compacted")
	if !strings.Contains(data, `"session":"s1"`) {
		t.Errorf("signal %s", data)
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
	again, stop := signalsOf(t, m, "", first)
	if id, _ := nextSignal(t, again, "compacted"); id == first {
		t.Errorf("%s came again", id)
	}
	nextSignal(t, again, "rejected")
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
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
}

// However many operators follow what OUTCOMES gets, one consumer reads it. One that resumes gets what one that stayed
// got, each once and in order; what is no longer stored is gone.
func TestSignalsShareAReader(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "")
	<-r.Worker.Ready()
	stayed, stop := signalsOf(t, m, "", "")
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
		_, stop := signalsOf(t, m, "", "")
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
	want := compactedSeqs(env, "s1")
	var ids, data []string
	for range want {
		id, text := nextSignal(t, stayed, "compacted")
		ids, data = append(ids, id), append(data, text)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("the operator that stayed got %v, want %v", ids, want)
	}
	for k := range want[1:] {
		again, stop := signalsOf(t, m, "", ids[k])
		for i := k + 1; i < len(ids); i++ {
			if id, text := nextSignal(t, again, "compacted"); id != ids[i] || text != data[i] {
				t.Fatalf("behind %s: %s %s, want %s %s", ids[k], id, text, ids[i], data[i])
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
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
}

// Each take-over is a signal of its own, also to an operator that resumes from before the first commit.
func TestSignalsOfTakeovers(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	first := env.Monitor(m, "")
	<-first.Worker.Ready()
	stayed, stop := signalsOf(t, m, "", "")
	defer stop()
	second := env.Start("b", owners.Listener("b"))
	<-second.Worker.Ready()
	var ids []string
	for range 2 { // the share of a worker that joins
		id, data := nextSignal(t, stayed, "takeover")
		if ids = append(ids, id); !strings.Contains(data, `"epoch":2`) {
			t.Errorf("signal %s", data)
		}
	}
	again, stop := signalsOf(t, m, "", "0")
	defer stop()
	var all []string
	for range env.Streams.Partitions.Count() + 2 {
		id, _ := nextSignal(t, again, "takeover")
		all = append(all, id)
	}
	if !slices.Equal(all[env.Streams.Partitions.Count():], ids) {
		t.Errorf("resumed from the beginning: %v, and from now on: %v", all, ids)
	}
	for _, stop := range []func() error{first.Stop, second.Stop} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// An operator names a session as its agent did, or by its id.
func TestOperatorsNameSessions(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "")
	<-r.Worker.Ready()
	const name = "chat/42 ü"
	id, err := events.SessionID(name)
	if err != nil {
		t.Fatal(err)
	}
	env.Publish(events.KindTurn, id, workertest.Turn(1))
	env.AwaitDecided()
	lines, stop := signalsOf(t, m, "?tenant=default&session="+url.QueryEscape(name), "")
	defer stop()
	for _, path := range []string{url.PathEscape(name), id} {
		if status, body := workertest.Get(t, m, "/v1/sessions/default/"+path+"/stats", "", ""); status != http.StatusOK || !strings.Contains(body, `"known":true`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := workertest.Post(t, m, "/v1/sessions/default/"+url.PathEscape(name)+"/compact", `{}`); status >= 300 {
		t.Errorf("compact: %d %s", status, body)
	}
	nextSignal(t, lines, "compacted")
	if status, body := workertest.Get(t, m, "/v1/sessions/default/"+strings.Repeat("a", 300)+"/stats", "", ""); status != http.StatusBadRequest {
		t.Errorf("no name: %d %s", status, body)
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
}

// compactedSeqs lists the sequences of a session's compactions.
func compactedSeqs(env *workertest.Env, session string) (out []string) {
	env.T.Helper()
	err := stream.ReadStream(env.T.Context(), env.JS, topology.OutcomesStream, "out.*.compacted.default."+session, 1, 0, func(_ jetstream.Msg, seq uint64) error {
		out = append(out, strconv.FormatUint(seq, 10))
		return nil
	})
	if err != nil {
		env.T.Fatal(err)
	}
	return out
}

// The fleet is shown whole by any worker: who serves each partition, and the workers that serve none.
func TestFleetIsShown(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	first := env.Monitor(m, "")
	<-first.Worker.Ready()
	second := env.Start("b", owners.Listener("b"))
	<-second.Worker.Ready()
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
	for _, stop := range []func() error{first.Stop, second.Stop} {
		if err := stop(); err != nil {
			t.Fatal(err)
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
	r := env.Monitor(m, "")
	<-r.Worker.Ready()
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
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
}
