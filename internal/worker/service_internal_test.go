package worker

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker"
	"compactd/internal/broker/embedded"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Before its partitions are caught up a worker says so, and how to go on; when it
// has lost them too.
func TestNotServed(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	nc, err := broker.Connect(t.Context(), broker.Options{InProcess: server})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	cfg, err := compaction.NewConfig(compaction.DefaultPolicy(), compaction.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Config{Read: nc, Commit: nc, Streams: &broker.Streams{Partitions: 2}, Compaction: cfg, Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	w.assigned[0].Store(true)
	w.assigned[1].Store(true)
	s := newService(w)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx, t.Context()) }()
	status := func() events.HealthResponse {
		t.Helper()
		for {
			m, err := nc.Request(events.SubjectHealth, nil, time.Minute)
			if err != nil { // not subscribed yet
				time.Sleep(time.Millisecond)
				continue
			}
			var h events.HealthResponse
			if err := events.Unmarshal(m.Data, &h); err != nil {
				t.Fatal(err)
			}
			return h
		}
	}
	if h := status(); h.Status != events.HealthStarting || h.Served != 0 || h.Partitions != 2 {
		t.Errorf("at the start: %+v", h)
	}
	for _, subject := range []string{events.SubjectCheck, events.SubjectContext, events.SubjectFiles, events.SubjectHistory, events.SubjectRecall, events.SubjectSessions, events.SubjectStats} {
		m, err := nc.Request(subject, []byte(`{"session":"s","turn":1}`), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var e events.ServiceError
		if err := events.Unmarshal(m.Data, &e); err != nil || e.Code != "unavailable" || e.Hint == "" || m.Header.Get(micro.ErrorCodeHeader) != "unavailable" {
			t.Errorf("%s: %s %v, %v", subject, m.Data, m.Header, err)
		}
	}
	w.ready.Done() // as the fleet does
	<-s.ready
	if h := status(); h.Status != events.HealthDegraded {
		t.Errorf("after partitions were lost: %+v", h)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A view is told only when the outcomes it rests on are committed; those of other
// sessions, and of later events, do not matter.
func TestHasTold(t *testing.T) {
	t.Parallel()
	a, b := events.Address{Tenant: "t", Session: "a"}, events.Address{Tenant: "t", Session: "b"}
	p := &partition{
		end:   position{seq: 9},
		queue: []group{{[]emitted{{address: b}}, position{seq: 4}}, {[]emitted{{address: b}, {address: a}}, position{seq: 7}}},
	}
	for _, test := range []struct {
		address events.Address
		seq     compaction.Seq
		want    bool
	}{{a, 3, true}, {b, 3, true}, {a, 4, true}, {b, 4, false}, {a, 6, true}, {a, 7, false}, {a, 9, false}, {b, 9, false}, {a, 10, false}} {
		if got := p.hasCommitted(test.address, test.seq); got != test.want {
			t.Errorf("%s at %d: got %v", test.address, test.seq, got)
		}
	}
	p.queue = nil
	if !p.hasCommitted(a, 9) || p.hasCommitted(a, 10) {
		t.Error("an empty queue has told what is decided, and no more")
	}
}
