package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/request"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/ops/transcript"
)

// A turn without an acknowledgement is sent again until there is one, and is stored
// once.
func TestUnansweredTurnIsSentAgain(t *testing.T) {
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	nc, err := connect.Open(t.Context(), connect.Options{InProcess: s})
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
	e, err := stream.NewEvent(events.KindTurn, a, "t1", payload)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Publish(t.Context(), js); err == nil || !jsapi.NoStream(err) {
		t.Fatalf("without a stream: %v; want no answer", err)
	}

	made := make(chan error, 1)
	time.AfterFunc(time.Second, func() { // longer than the client itself tries again
		_, err := topology.Ensure(t.Context(), js, topology.Config{CreateBytes: 1 << 30})
		made <- err
	})
	first, err := Publisher{JS: js}.Persist(t.Context(), events.KindTurn, a, "t1", payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	var taken *stream.IDTakenError
	if again, err := (Publisher{JS: js}).Persist(t.Context(), events.KindTurn, a, "t1", payload); !errors.As(err, &taken) || taken.Seq != first.Sequence {
		t.Errorf("published by another: %+v, %v; want the duplicate of %d as an error", again, err, first.Sequence)
	}
}

// An acknowledgement that is lost makes the next try a duplicate, which is the event
// itself and no error.
func TestLostAcknowledgementIsNoDuplicate(t *testing.T) {
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	var deaf deafDialer
	nc, err := nats.Connect(s.ClientURL(), nats.SetCustomDialer(&deaf))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := topology.Ensure(t.Context(), js, topology.Config{CreateBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	deaf.answers.Store(1)
	ack, err := Publisher{JS: js}.Persist(t.Context(), events.KindTurn, events.Address{Tenant: "default", Session: "s1"}, "t1", []byte(`{"messages":[]}`))
	if err != nil || !ack.Duplicate || ack.Sequence != 1 || deaf.answers.Load() != 0 {
		t.Errorf("the second try: %+v, %v; %d answers still to lose", ack, err, deaf.answers.Load())
	}
}

// deafDialer dials connections that lose acknowledgements.
type deafDialer struct{ answers atomic.Int64 }

func (d *deafDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return &deafConn{c, d}, err
}

type deafConn struct {
	net.Conn
	of *deafDialer
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.of.answers.Load() > 0 && bytes.Contains(b[:n], []byte(`"stream":"SESSIONS"`)) {
		c.of.answers.Add(-1)
		return c.Conn.Read(b)
	}
	return n, err
}

// Where no worker runs, a replay that is stored reports it before it waits.
func TestReplayWithoutWorker(t *testing.T) {
	w := brokertest.New(t)
	for _, received := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		var reported error
		_, err := Run(ctx, Config{Conn: w.NC, Received: received, Undecided: func(err error) {
			reported = err
			cancel()
		}}, slices.Values([]transcript.Session{{Name: fmt.Sprintf("s-%t", received), Turns: []transcript.Turn{{ID: "t1", Number: 1, Payload: []byte(`{"messages":[{"role":"user","content":"hi"}]}`)}}}}))
		if !errors.Is(reported, request.ErrNoWorker) || err == nil {
			t.Errorf("received %t: reported %v, then %v", received, reported, err)
		}
	}
}

// The id of a message is bound to tenant and session: the same event of others has
// another.
func TestMessageID(t *testing.T) {
	ids := map[string]bool{}
	for _, a := range []events.Address{{Tenant: "acme", Session: "s"}, {Tenant: "globex", Session: "s"}, {Tenant: "acme", Session: "t"}} {
		first, again, other := MessageID(a, "turn-1"), MessageID(a, "turn-1"), MessageID(a, "turn-2")
		ids[first] = true
		if first != again || first == other || MessageID(a, "") != "" {
			t.Errorf("the ids of %s do not follow from the event: %s, %s, %s", a, first, again, other)
		}
	}
	if len(ids) != 3 || ids["turn-1"] {
		t.Errorf("ids of 3 sessions: %v", ids)
	}
}
