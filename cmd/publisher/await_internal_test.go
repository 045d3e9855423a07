package main

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"compactd/internal/events"
)

// An event whose acknowledgement is lost is sent again under the same message id, also where it has no id of its own.
func TestLostAcknowledgement(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	f := &flags{nc: nc, Tenant: "acme"}
	subject, err := events.Input(events.KindTurn, f.address("s"))
	if err != nil {
		t.Fatal(err)
	}
	ids := make(chan string, 2)
	if _, err = nc.Subscribe(subject, func(m *nats.Msg) {
		if ids <- m.Header.Get(nats.MsgIdHdr); len(ids) == 2 { // the first answer is lost
			_ = m.Respond([]byte(`{"stream":"SESSIONS","seq":7,"duplicate":true}`))
		}
	}); err != nil {
		t.Fatal(err)
	}
	w, err := f.publish(t.Context(), events.KindTurn, "s", "", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if first, again := <-ids, <-ids; first == "" || first != again || w.result.Seq != 7 {
		t.Errorf("sent as %q and %q, %+v", first, again, w.result)
	}
}
