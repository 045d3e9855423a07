package worker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/partitions"
)

// A worker whose partitions have not caught up refuses requests with a hint, and so does one that
// has lost them.
func TestNotServed(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	nc, err := connect.Open(t.Context(), connect.Options{InProcess: server})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	cfg, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Config{Read: nc, Commit: nc, Streams: &topology.Streams{Partitions: partitions.New(2)}, Compaction: cfg, Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	w.parts.Assign(0, true)
	w.parts.Assign(1, true)
	s := w.service
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, t.Context()) }()
	request := func(subject, body string) *nats.Msg {
		for {
			m, err := nc.Request(subject, []byte(body), time.Minute)
			if !errors.Is(err, nats.ErrNoResponders) { // else it is not subscribed yet
				if err != nil {
					t.Error(err)
					return &nats.Msg{}
				}
				return m
			}
			time.Sleep(time.Millisecond)
		}
	}
	status := func() events.HealthResponse {
		t.Helper()
		var h events.HealthResponse
		if err := codec.Unmarshal(request(events.SubjectHealth, "").Data, &h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := status(); h.Status != events.HealthStarting || h.Served != 0 || h.Partitions != 2 {
		t.Errorf("at the start: %+v", h)
	}
	var wg sync.WaitGroup
	for _, subject := range []string{events.SubjectCheck, events.SubjectContext, events.SubjectFiles, events.SubjectHistory, events.SubjectRecall, events.SubjectSessions, events.SubjectStats} {
		wg.Go(func() {
			m := request(subject, `{"session":"s","turn":1}`)
			var e events.ServiceError
			if err := codec.Unmarshal(m.Data, &e); err != nil || e.Code != "unavailable" || e.Hint == "" || m.Header.Get(micro.ErrorCodeHeader) != "unavailable" {
				t.Errorf("%s: %s %v, %v", subject, m.Data, m.Header, err)
			}
		})
	}
	wg.Wait()
	w.ready.Done() // as the fleet does
	<-w.Ready()
	if h := status(); h.Status != events.HealthDegraded {
		t.Errorf("after partitions were lost: %+v", h)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
