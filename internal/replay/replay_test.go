package replay

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/broker/embedded"
	"compactd/internal/events"
)

// A turn that nobody answers for is sent again until somebody does, and is stored
// once.
func TestUnansweredTurnIsSentAgain(t *testing.T) {
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	nc, err := broker.Connect(t.Context(), broker.Options{InProcess: s})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	a := events.Address{Tenant: "default", Session: "s1"}
	payload := []byte(`{"messages":[{"role":"user","content":"hi"}]}`)
	if _, err := Publish(t.Context(), js, events.KindTurn, a, "t1", payload); err == nil || !unanswered(err) {
		t.Fatalf("without a stream: %v; want that nobody answers", err)
	}

	made := make(chan error, 1)
	time.AfterFunc(time.Second, func() { // longer than the client itself tries again
		_, err := broker.Ensure(t.Context(), js, broker.Topology{CreateBytes: 1 << 30})
		made <- err
	})
	first, err := Persist(t.Context(), js, events.KindTurn, a, "t1", payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	again, err := Persist(t.Context(), js, events.KindTurn, a, "t1", payload)
	if err != nil || !again.Duplicate || again.Sequence != first.Sequence {
		t.Errorf("sent once more: %+v, %v; want a duplicate of %d", again, err, first.Sequence)
	}
}
