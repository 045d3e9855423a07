package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/client"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
	"compactd/internal/ops/replay"
	"compactd/internal/testkit/edge"
	"compactd/internal/testkit/figures"
)

// Accounts do not part message ids. The tenant acme uses those of globex first: all
// that a compromised edge shows it, and all that it can compute. The client of globex
// sends each turn again, and the worker has all of them; publisher gets an error for
// each that was not stored.
func TestSquattedIDs(t *testing.T) {
	const turns = 30
	f := newDirectory(t)
	o := f.options("single.conf")
	o.AllowNonTLS = true // the edge ends TLS, so that it reads along
	url := run(t, o).ClientURL()
	w := startWorker(t, url, 1)
	evil := newAgent(t, url, "acme")
	squat := func(id string) error {
		_, err := evil.js.Publish(t.Context(), "session.turn.acme.x", []byte(`{"messages":[]}`), jetstream.WithMsgID(id))
		return err
	}

	passed, copied, reported := 0, 0, 0
	edge := &edge.Edge{Steal: func(id string) error {
		if passed++; passed%2 == 0 { // the second try of each turn passes
			return nil
		}
		copied++
		return squat(id)
	}}
	nc, err := nats.Connect(strings.Replace(url, "tls://", "nats://", 1), nats.UserInfo("globex", password("globex")), nats.SetCustomDialer(edge),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // a client checks whether it may read streams
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c, err := client.Connect(t.Context(), client.Options{Conn: nc, Tenant: "globex", OnDuplicate: func(client.Duplicate) { reported++ }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Open(t.Context(), "s1", client.Config{Model: client.Model{Provider: "openai", Name: "gpt-4o"}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range turns {
		if err := s.Publish(t.Context(), client.Turn{Messages: []any{map[string]any{"role": "user", "content": fmt.Sprint("question ", n)}}}); err != nil {
			t.Fatal(err)
		}
	}

	a := events.Address{Tenant: "globex", Session: "s2"}
	victim, refused, stored := newAgent(t, url, "globex"), 0, 0
	for n := 1; n <= turns; n++ {
		id := replay.MessageID(a, fmt.Sprint("turn-", n))
		if n%2 == 0 {
			if err := squat(id); err != nil {
				t.Fatal(err)
			}
		}
		_, err := replay.Publisher{JS: victim.js}.Persist(t.Context(), events.KindTurn, a, id, []byte(turn(n/2+1)))
		_, taken := errors.AsType[*stream.IDTakenError](err)
		switch {
		case taken:
			refused++
		case err != nil:
			t.Fatal(err)
		default:
			stored++
		}
	}
	w.awaitPublished()
	in := subjects(t, newJS(t, connectAs(t, url, "operator")))
	vanished := turns - int(in[w.stored("globex", "s1")]) + stored - int(in[w.stored("globex", "s2")])
	figures.Print(t, "P19", "copied", copied+refused, "reported", reported+refused, "vanished", vanished)
	if vanished != 0 || reported != turns || copied != turns || refused != turns/2 {
		t.Errorf("%d turns vanished; of %d copies %d were reported, %d of %d refused", vanished, copied, reported, refused, turns/2)
	}
	var history events.ContextResponse
	if code := victim.ask(events.OfTenant(events.SubjectContext, "globex"), `{"tenant":"globex","session":"s1"}`, &history); code != "" || history.Through.Turn != turns {
		t.Errorf("the worker has turns up to %d of %d: %q", history.Through.Turn, turns, code)
	}
	w.wantNoRefusal()
}
